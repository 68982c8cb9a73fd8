package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * Kafka's own clients behind a pipe, many at once: a line of JSON in for each, a line {"case": ..., "error": ...} out
 * once it has done what such a client does, in the order in which they end; the error is empty, or the
 * AuthorizationException that stopped it, or what else did. The arguments are client properties that all of them have,
 * {@code key=value}. tests/support/kafka/clients.py is the other end.
 */
public final class ClientPipe {
    static final int SECONDS = 60;
    private static final int AT_ONCE = 32;
    private static final long LOOK_MS = 50;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String STRING = "org.apache.kafka.common.serialization.String";

    private final Map<String, Object> common;

    private ClientPipe(Map<String, Object> common) {
        this.common = common;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Map<String, Object> common = new HashMap<>();
        for (String arg : args) {
            int equals = arg.indexOf('=');
            common.put(arg.substring(0, equals), arg.substring(equals + 1));
        }
        ClientPipe pipe = new ClientPipe(common);
        ExecutorService clients = Executors.newFixedThreadPool(AT_ONCE);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode ask = JSON.readTree(line);
            clients.submit(() -> {
                String answer = pipe.answer(ask);
                synchronized (out) {
                    out.println(answer);
                }
            });
        }
        clients.shutdown();
        clients.awaitTermination(1, TimeUnit.HOURS);
        Runtime.getRuntime().halt(0);
    }

    private String answer(JsonNode ask) {
        String error = "";
        try {
            run(ask);
        } catch (Exception e) {
            error = said(e);
        }
        return JSON.createObjectNode().put("case", ask.get("case").asText()).put("error", error).toString();
    }

    /** The refusal among the causes of an exception, if there is one; the producer wraps one of them as a text only. */
    static String said(Throwable thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof AuthorizationException || cause.toString().endsWith("authorization failed.")) {
                return "refused: " + cause;
            }
        }
        return thrown.toString();
    }

    private void run(JsonNode ask) throws Exception {
        switch (ask.get("client").asText()) {
            case "produce" -> produce(ask);
            case "consume" -> consume(ask);
            case "transact" -> transact(ask);
            case "stream" -> new StreamClient(ask, login(ask, ask.get("user").asText()), login(ask, "admin")).run();
            case "admin" -> administer(ask);
            default -> throw new IllegalArgumentException("unknown client");
        }
    }

    private Map<String, Object> login(JsonNode ask, String user) {
        Map<String, Object> config = new HashMap<>(common);
        config.put("sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required "
            + "username=\"" + user + "\" password=\"" + user + "-secret\";");
        return config;
    }

    private Map<String, Object> config(JsonNode ask, String... more) {
        Map<String, Object> config = login(ask, ask.get("user").asText());
        for (int i = 0; i < more.length; i += 2) {
            config.put(more[i], more[i + 1]);
        }
        return config;
    }

    private KafkaProducer<String, String> producer(JsonNode ask, String... more) {
        Map<String, Object> config = config(ask, more);
        config.put("key.serializer", STRING + "Serializer");
        config.put("value.serializer", STRING + "Serializer");
        return new KafkaProducer<>(config);
    }

    private void produce(JsonNode ask) throws Exception {
        KafkaProducer<String, String> producer = producer(ask);
        try {
            send(producer, ask);
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    private void transact(JsonNode ask) throws Exception {
        KafkaProducer<String, String> producer = producer(ask, "transactional.id", ask.get("transaction").asText());
        try {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, ask);
            if (ask.has("group")) {
                TopicPartition read = new TopicPartition(ask.get("input").asText(), 0);
                producer.sendOffsetsToTransaction(
                    Map.of(read, new OffsetAndMetadata(1)), new ConsumerGroupMetadata(ask.get("group").asText()));
            }
            producer.commitTransaction();
        } finally {
            producer.close(Duration.ZERO); // it would wait a minute for an open transaction
        }
    }

    private static void send(KafkaProducer<String, String> producer, JsonNode ask) throws Exception {
        producer.send(new ProducerRecord<>(ask.get("output").asText(), "k", "v")).get(SECONDS, TimeUnit.SECONDS);
    }

    private void consume(JsonNode ask) {
        Map<String, Object> config = config(ask, "group.id", ask.get("group").asText(), "auto.offset.reset", "earliest",
            "group.protocol", ask.get("protocol").asText());
        config.put("key.deserializer", STRING + "Deserializer");
        config.put("value.deserializer", STRING + "Deserializer");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(List.of(ask.get("input").asText()));
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            while (consumer.poll(Duration.ofMillis(200)).isEmpty()) {
                if (System.nanoTime() > end) {
                    throw new IllegalStateException("nothing came");
                }
            }
            consumer.commitSync();
        }
    }

    /** What a tool for topics does with one of its own: create, describe, change, delete. */
    private void administer(JsonNode ask) throws Exception {
        String topic = ask.get("topic").asText();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = Admin.create(config(ask))) {
            wait(admin.createTopics(List.of(new NewTopic(topic, Optional.of(1), Optional.empty()))).all());
            once(() -> admin.describeTopics(List.of(topic)).allTopicNames());
            once(() -> admin.incrementalAlterConfigs(Map.of(resource, List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", "60000"), AlterConfigOp.OpType.SET)))).all());
            once(() -> admin.describeConfigs(List.of(resource)).all());
            once(() -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all());
            once(() -> admin.deleteTopics(List.of(topic)).all());
        }
    }

    /** Asks until the broker knows the topic, which it learns a moment after the controller. */
    private static void once(Supplier<KafkaFuture<?>> ask) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (true) {
            try {
                wait(ask.get());
                return;
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException) || System.nanoTime() > end) {
                    throw e;
                }
                Thread.sleep(LOOK_MS);
            }
        }
    }

    static <T> T wait(KafkaFuture<T> future) throws Exception {
        return future.get(SECONDS, TimeUnit.SECONDS);
    }
}
