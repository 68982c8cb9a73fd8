package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.locks.LockSupport;
import kafka.security.authorizer.AclAuthorizer;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;

/**
 * Kafka 3.9's AclAuthorizer on a ZooKeeper, one JSON object a line in and one out. A rule or a filter is an array:
 * resource type, name, pattern type, principal, host, operation, permission type (codes; null: any). Operations:
 * configure {properties}, create {acls}, delete {filters}, acls {filter}, decide {strings, rows of byType, principal,
 * host, operation, type, name by their numbers}, await {principal, host, operation, type, name, allowed, millis},
 * close. A failure is {"error": class and message}. {@code tests/support/zookeeper/real_acl_authorizer.py} is the other end.
 */
public final class AclPipe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Authorizer authorizer;

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(
            new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        AclPipe pipe = new AclPipe();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode reply;
            try {
                reply = pipe.answer(JSON.readTree(line));
            } catch (Throwable e) {
                reply = JSON.createObjectNode().put("error", text(e));
            }
            out.println(JSON.writeValueAsString(reply));
            out.flush();
        }
        System.exit(0);
    }

    private ObjectNode answer(JsonNode message) throws Exception {
        switch (message.get("op").asText()) {
            case "configure":
                return configure(message.get("properties"));
            case "create":
                return create(message.get("acls"));
            case "delete":
                return delete(message.get("filters"));
            case "acls":
                return acls(filter(message.get("filter")));
            case "decide":
                return decide(message);
            case "await":
                return await(message);
            case "close":
                authorizer.close();
                authorizer = null;
                return JSON.createObjectNode();
            default:
                throw new IllegalArgumentException(message.toString());
        }
    }

    private ObjectNode configure(JsonNode properties) {
        Map<String, Object> configs = new HashMap<>();
        properties.fields().forEachRemaining(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        AclAuthorizer made = new AclAuthorizer();
        long begin = System.nanoTime();
        made.configure(configs);
        long nanos = System.nanoTime() - begin;
        authorizer = made;
        return JSON.createObjectNode().put("nanos", nanos);
    }

    private ObjectNode create(JsonNode rows) throws Exception {
        List<AclBinding> bindings = new ArrayList<>();
        rows.forEach(row -> bindings.add(binding(row)));
        ArrayNode errors = JSON.createArrayNode();
        for (CompletionStage<AclCreateResult> result : stages(authorizer.createAcls(context("User:admin", "127.0.0.1"), bindings))) {
            errors.add(result.toCompletableFuture().get().exception().map(AclPipe::text).orElse(null));
        }
        return JSON.createObjectNode().set("errors", errors);
    }

    @SuppressWarnings("unchecked")
    private static <T> List<CompletionStage<T>> stages(List<? extends CompletionStage<T>> stages) {
        return (List<CompletionStage<T>>) stages;
    }

    private ObjectNode delete(JsonNode rows) throws Exception {
        List<AclBindingFilter> filters = new ArrayList<>();
        rows.forEach(row -> filters.add(filter(row)));
        ArrayNode results = JSON.createArrayNode();
        for (CompletionStage<AclDeleteResult> stage : stages(authorizer.deleteAcls(context("User:admin", "127.0.0.1"), filters))) {
            AclDeleteResult result = stage.toCompletableFuture().get();
            ObjectNode row = results.addObject();
            row.put("error", result.exception().map(AclPipe::text).orElse(null));
            ArrayNode deleted = row.putArray("deleted");
            result.aclBindingDeleteResults().forEach(one -> {
                ArrayNode values = row(one.aclBinding());
                values.add(one.exception().map(AclPipe::text).orElse(null));
                deleted.add(values);
            });
        }
        return JSON.createObjectNode().set("results", results);
    }

    private ObjectNode acls(AclBindingFilter filter) {
        ArrayNode rows = JSON.createArrayNode();
        authorizer.acls(filter).forEach(binding -> rows.add(row(binding)));
        return JSON.createObjectNode().set("acls", rows);
    }

    private ObjectNode decide(JsonNode message) throws Exception {
        JsonNode strings = message.get("strings");
        Map<Long, AuthorizableRequestContext> contexts = new HashMap<>();
        StringBuilder letters = new StringBuilder();
        ArrayNode errors = JSON.createArrayNode();
        for (JsonNode row : message.get("rows")) {
            int principal = row.get(1).asInt();
            int host = row.get(2).asInt();
            long key = ((long) principal << 32) | host;
            AuthorizableRequestContext context = contexts.get(key);
            if (context == null) {
                context = context(strings.get(principal).asText(), strings.get(host).asText());
                contexts.put(key, context);
            }
            try {
                letters.append(ask(context, row, strings) == AuthorizationResult.ALLOWED ? 'A' : 'D');
            } catch (Exception e) {
                letters.append('E');
                errors.add(text(e));
            }
        }
        return JSON.createObjectNode().put("letters", letters.toString()).set("errors", errors);
    }

    private AuthorizationResult ask(AuthorizableRequestContext context, JsonNode row, JsonNode strings) {
        AclOperation operation = AclOperation.fromCode((byte) row.get(3).asInt());
        ResourceType type = ResourceType.fromCode((byte) row.get(4).asInt());
        if (row.get(0).asInt() == 1) {
            return authorizer.authorizeByResourceType(context, operation, type);
        }
        return authorize(context, operation, type, strings.get(row.get(5).asInt()).asText());
    }

    private AuthorizationResult authorize(
        AuthorizableRequestContext context, AclOperation operation, ResourceType type, String name) {
        ResourcePattern resource = new ResourcePattern(type, name, PatternType.LITERAL);
        return authorizer.authorize(
            context, List.of(new org.apache.kafka.server.authorizer.Action(operation, resource, 1, false, false))).get(0);
    }

    /** Asks until the answer is as said, and says when it was, in microseconds since 1970. */
    private ObjectNode await(JsonNode message) throws Exception {
        AuthorizableRequestContext context = context(message.get("principal").asText(), message.get("host").asText());
        AclOperation operation = AclOperation.fromCode((byte) message.get("operation").asInt());
        ResourceType type = ResourceType.fromCode((byte) message.get("type").asInt());
        String name = message.get("name").asText();
        AuthorizationResult wanted =
            message.get("allowed").asBoolean() ? AuthorizationResult.ALLOWED : AuthorizationResult.DENIED;
        long deadline = System.nanoTime() + message.get("millis").asLong() * 1_000_000;
        while (authorize(context, operation, type, name) != wanted) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("not " + wanted + " in time");
            }
            LockSupport.parkNanos(50_000);
        }
        Instant now = Instant.now();
        return JSON.createObjectNode().put("micros", now.getEpochSecond() * 1_000_000 + now.getNano() / 1000);
    }

    private static AuthorizableRequestContext context(String principal, String host) throws IOException {
        InetAddress.getByName(host);
        return new Request.Context(principal, host, 1);
    }

    private static AclBinding binding(JsonNode row) {
        return new AclBinding(
            new ResourcePattern(type(row), row.get(1).asText(), PatternType.fromCode((byte) row.get(2).asInt())),
            new AccessControlEntry(row.get(3).asText(), row.get(4).asText(), operation(row), permission(row)));
    }

    private static AclBindingFilter filter(JsonNode row) {
        return new AclBindingFilter(
            new ResourcePatternFilter(type(row), textOrNull(row.get(1)), PatternType.fromCode((byte) row.get(2).asInt())),
            new AccessControlEntryFilter(textOrNull(row.get(3)), textOrNull(row.get(4)), operation(row), permission(row)));
    }

    private static ResourceType type(JsonNode row) {
        return ResourceType.fromCode((byte) row.get(0).asInt());
    }

    private static AclOperation operation(JsonNode row) {
        return AclOperation.fromCode((byte) row.get(5).asInt());
    }

    private static AclPermissionType permission(JsonNode row) {
        return AclPermissionType.fromCode((byte) row.get(6).asInt());
    }

    private static String textOrNull(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }

    private static ArrayNode row(AclBinding binding) {
        ArrayNode row = JSON.createArrayNode();
        row.add(binding.pattern().resourceType().code()).add(binding.pattern().name());
        row.add(binding.pattern().patternType().code());
        row.add(binding.entry().principal()).add(binding.entry().host());
        row.add(binding.entry().operation().code()).add(binding.entry().permissionType().code());
        return row;
    }

    private static String text(Throwable e) {
        String text = e.getClass().getName() + ": " + e.getMessage();
        return e.getCause() == null || e.getCause() == e ? text : text + " <- " + text(e.getCause());
    }
}
