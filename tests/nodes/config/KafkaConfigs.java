import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** What a real Kafka makes of configurations, JAAS lines and kafka-storage's flags: a JSON list of questions on stdin. */
public final class KafkaConfigs {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        List<Object> answers = new ArrayList<>();
        for (JsonNode question : JSON.readTree(System.in)) {
            Map<String, Object> answer = new LinkedHashMap<>();
            try {
                answer.put("ok", answer(question));
            } catch (Throwable e) {
                answer.put("error", e.getClass().getSimpleName() + ": " + e.getMessage());
            }
            answers.add(answer);
        }
        out.println(JSON.writeValueAsString(answers));
    }

    private static Object answer(JsonNode question) throws Exception {
        return switch (question.get("op").asText()) {
            case "config" -> config(question.get("properties"));
            case "jaas" -> jaas(question.get("text").asText());
            case "storage" -> storage(question.get("args"));
            case "keys" -> new ArrayList<>(org.apache.kafka.server.config.AbstractKafkaConfig.CONFIG_DEF.names());
            default -> throw new IllegalArgumentException(question.toString());
        };
    }

    private static Object config(JsonNode values) {
        Properties properties = new Properties();
        values.properties().forEach(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
        kafka.server.KafkaConfig config = new kafka.server.KafkaConfig(properties, false);
        Map<String, Object> found = new TreeMap<>();
        found.put("listeners", endpoints(config.listeners()));
        found.put("advertised", endpoints(config.effectiveAdvertisedBrokerListeners()));
        found.put("controllers", endpoints(config.effectiveAdvertisedControllerListeners()));
        List<String> early = new ArrayList<>();
        config.earlyStartListeners().foreach(name -> early.add(((ListenerName) name).value()));
        found.put("early", early);
        found.put("interBroker", config.interBrokerListenerName().value());
        found.put("metadataLogDir", config.metadataLogDir());
        found.put("logDirs", new ArrayList<>(config.logDirs()));
        found.put("nodeId", config.nodeId());
        return found;
    }

    private static List<String> endpoints(scala.collection.Iterable<?> endpoints) {
        List<String> texts = new ArrayList<>();
        endpoints.foreach(each -> {
            Endpoint endpoint = (Endpoint) each;
            String host = endpoint.host() == null ? "" : endpoint.host();
            texts.add(endpoint.listener() + " " + endpoint.securityProtocol() + " " + host + " " + endpoint.port());
            return null;
        });
        return texts;
    }

    private static Object jaas(String text) {
        Map<String, Object> configs = Map.of("plain.sasl.jaas.config", new Password(text));
        var entry = JaasContext.loadServerContext(new ListenerName("L"), "PLAIN", configs).configurationEntries().get(0);
        return Map.of("module", String.valueOf(entry.getLoginModuleName()), "options", entry.getOptions());
    }

    private static Object storage(JsonNode args) {
        String[] texts = JSON.convertValue(args, String[].class);
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        int exit = kafka.tools.StorageTool.execute(texts, new PrintStream(said));
        return Map.of("exit", exit, "out", said.toString());
    }
}
