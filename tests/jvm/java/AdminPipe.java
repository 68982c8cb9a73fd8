package aclog;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.admin.UserScramCredentialsDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

/**
 * Kafka's own Admin clients, many in one JVM, each behind a connection of its own to the port that is printed. The first
 * line of a connection is a JSON object of client properties; then a line of JSON {"op": ..., ...} in, a line of JSON
 * out; an error is {"error": "class: message"}. A connection that ends closes its client, and a call that waits fails.
 * Rules have the keys of {@code aclog acls list --format jsonl}. The JVM ends with its stdin.
 * tests/support/kafka/server.py is the other end.
 */
public final class AdminPipe {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long SECONDS = 60;

    private final Admin admin;

    private AdminPipe(Admin admin) {
        this.admin = admin;
    }

    public static void main(String[] args) throws IOException {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        System.out.println(server.getLocalPort());
        System.setOut(System.err);
        Thread acceptor = new Thread(() -> accept(server));
        acceptor.setDaemon(true);
        acceptor.start();
        while (System.in.read() >= 0) {
            continue;
        }
        Runtime.getRuntime().halt(0);
    }

    private static void accept(ServerSocket server) {
        while (true) {
            try {
                Socket socket = server.accept();
                Thread connection = new Thread(() -> connection(socket));
                connection.setDaemon(true);
                connection.start();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    /** Reads while an operation runs, to close the client as soon as the connection ends. */
    private static void connection(Socket socket) {
        ExecutorService operations = Executors.newSingleThreadExecutor();
        try (socket) {
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            PrintStream out = new PrintStream(socket.getOutputStream(), true, StandardCharsets.UTF_8);
            Map<String, Object> config = JSON.readValue(in.readLine(), new TypeReference<Map<String, Object>>() { });
            Admin admin = Admin.create(config);
            try {
                AdminPipe pipe = new AdminPipe(admin);
                for (String line = in.readLine(); line != null; line = in.readLine()) {
                    JsonNode ask = JSON.readTree(line);
                    operations.execute(() -> out.println(pipe.serve(ask)));
                }
            } finally {
                admin.close(Duration.ZERO);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } finally {
            operations.shutdown();
        }
    }

    private JsonNode serve(JsonNode ask) {
        try {
            return switch (ask.get("op").asText()) {
                case "createAcls" -> done(admin.createAcls(bindings(ask.get("acls"))).all());
                case "deleteAcls" -> rules(wait(admin.deleteAcls(filters(ask.get("acls"))).all()));
                case "describeAcls" -> rules(wait(admin.describeAcls(AclBindingFilter.ANY).values()));
                case "alterScram" -> done(admin.alterUserScramCredentials(alterations(ask.get("users"))).all());
                case "describeScram" -> users(wait(admin.describeUserScramCredentials().all()));
                case "createToken" -> token(wait(admin.createDelegationToken(tokenOptions(ask)).delegationToken()));
                case "renewToken" -> done(admin.renewDelegationToken(
                    hmac(ask), new RenewDelegationTokenOptions().renewTimePeriodMs(ask.get("period").asLong()))
                    .expiryTimestamp());
                case "expireToken" -> done(admin.expireDelegationToken(
                    hmac(ask), new ExpireDelegationTokenOptions().expiryTimePeriodMs(ask.get("period").asLong()))
                    .expiryTimestamp());
                case "describeTokens" -> tokens(wait(admin.describeDelegationToken().delegationTokens()));
                case "createTopic" -> done(admin.createTopics(
                    List.of(new NewTopic(ask.get("topic").asText(), Optional.of(2), Optional.empty()))).all());
                case "deleteTopic" -> done(admin.deleteTopics(List.of(ask.get("topic").asText())).all());
                case "alterTopic" -> done(admin.incrementalAlterConfigs(Map.of(
                    new ConfigResource(ConfigResource.Type.TOPIC, ask.get("topic").asText()),
                    List.of(new AlterConfigOp(
                        new ConfigEntry(ask.get("name").asText(), ask.get("value").asText()),
                        AlterConfigOp.OpType.SET)))).all());
                case "quorum" -> quorum(wait(admin.describeMetadataQuorum().quorumInfo()));
                default -> throw new IllegalArgumentException("unknown op");
            };
        } catch (ExecutionException e) {
            return JSON.createObjectNode().put("error", e.getCause().toString());
        } catch (Exception e) {
            return JSON.createObjectNode().put("error", e.toString());
        }
    }

    private static <T> T wait(KafkaFuture<T> future) throws Exception {
        return future.get(SECONDS, TimeUnit.SECONDS);
    }

    private static JsonNode done(KafkaFuture<?> future) throws Exception {
        wait(future);
        return JSON.createObjectNode();
    }

    private static List<AclBinding> bindings(JsonNode rows) {
        List<AclBinding> bindings = new ArrayList<>();
        for (JsonNode row : rows) {
            bindings.add(new AclBinding(
                new ResourcePattern(
                    ResourceType.valueOf(row.get("resourceType").asText()),
                    row.get("resourceName").asText(),
                    PatternType.valueOf(row.get("patternType").asText())),
                new AccessControlEntry(
                    row.get("principal").asText(),
                    row.get("host").asText(),
                    AclOperation.valueOf(row.get("operation").asText()),
                    AclPermissionType.valueOf(row.get("permissionType").asText()))));
        }
        return bindings;
    }

    private static List<AclBindingFilter> filters(JsonNode rows) {
        List<AclBindingFilter> filters = new ArrayList<>();
        for (AclBinding binding : bindings(rows)) {
            filters.add(binding.toFilter());
        }
        return filters;
    }

    private static ArrayNode rules(Collection<AclBinding> bindings) {
        ArrayNode rows = JSON.createArrayNode();
        for (AclBinding binding : bindings) {
            rows.addObject()
                .put("resourceType", binding.pattern().resourceType().name())
                .put("resourceName", binding.pattern().name())
                .put("patternType", binding.pattern().patternType().name())
                .put("principal", binding.entry().principal())
                .put("host", binding.entry().host())
                .put("operation", binding.entry().operation().name())
                .put("permissionType", binding.entry().permissionType().name());
        }
        return rows;
    }

    private static List<UserScramCredentialAlteration> alterations(JsonNode rows) {
        List<UserScramCredentialAlteration> alterations = new ArrayList<>();
        for (JsonNode row : rows) {
            String user = row.get("user").asText();
            ScramMechanism mechanism = ScramMechanism.fromMechanismName(row.get("mechanism").asText());
            alterations.add(row.has("password")
                ? new UserScramCredentialUpsertion(
                    user, new ScramCredentialInfo(mechanism, row.get("iterations").asInt()), row.get("password").asText())
                : new UserScramCredentialDeletion(user, mechanism));
        }
        return alterations;
    }

    private static ArrayNode users(Map<String, UserScramCredentialsDescription> described) {
        ArrayNode rows = JSON.createArrayNode();
        described.forEach((user, description) -> {
            ArrayNode infos = rows.addObject().put("user", user).putArray("credentialInfos");
            description.credentialInfos().forEach(info -> infos.addObject()
                .put("mechanism", info.mechanism().mechanismName())
                .put("iterations", info.iterations()));
        });
        return rows;
    }

    private static CreateDelegationTokenOptions tokenOptions(JsonNode ask) {
        List<KafkaPrincipal> renewers = new ArrayList<>();
        ask.path("renewers").forEach(node -> renewers.add(Request.principalOf(node.asText())));
        CreateDelegationTokenOptions options =
            new CreateDelegationTokenOptions().renewers(renewers).maxLifetimeMs(ask.path("maxLife").asLong(-1));
        if (ask.has("owner")) {
            options.owner(Request.principalOf(ask.get("owner").asText()));
        }
        return options;
    }

    private static byte[] hmac(JsonNode ask) {
        return Base64.getDecoder().decode(ask.get("hmac").asText());
    }

    private static ArrayNode tokens(List<DelegationToken> described) {
        ArrayNode rows = JSON.createArrayNode();
        described.forEach(token -> rows.add(token(token)));
        return rows;
    }

    private static ObjectNode token(DelegationToken token) {
        ObjectNode row = JSON.createObjectNode()
            .put("tokenId", token.tokenInfo().tokenId())
            .put("owner", token.tokenInfo().ownerAsString())
            .put("requester", token.tokenInfo().tokenRequesterAsString())
            .put("issueTimestamp", token.tokenInfo().issueTimestamp())
            .put("expiryTimestamp", token.tokenInfo().expiryTimestamp())
            .put("maxTimestamp", token.tokenInfo().maxTimestamp())
            .put("hmac", token.hmacAsBase64String());
        ArrayNode renewers = row.putArray("renewers");
        token.tokenInfo().renewersAsString().forEach(renewers::add);
        return row;
    }

    private static ObjectNode quorum(QuorumInfo info) {
        return JSON.createObjectNode()
            .put("leaderId", info.leaderId())
            .put("leaderEpoch", info.leaderEpoch())
            .put("highWatermark", info.highWatermark());
    }
}
