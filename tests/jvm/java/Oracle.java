package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metadata.AccessControlEntryRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;

/**
 * The real StandardAuthorizer behind a pipe. A message is one letter, a 4-byte length and that many bytes of JSON; an
 * answer is a 4-byte length and JSON. Letters: L load an estate, C change it rule by rule, F the rules that a filter
 * takes, A one decision with its whole audit lines, D many decisions at once: after its JSON (the strings) come a
 * 4-byte count and as many rows of seven 4-byte numbers (kind, principal, host, operation, resource type, name,
 * pattern type; strings by their index); its answer begins with a letter (A D E H) and a 4-byte rule for each row.
 * A rule is the index of an ACL in the order they came, or one of the negative codes of {@link Decider}.
 * {@code tests/support/kafka/oracle.py} is the other end.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final DataInputStream in;
    private final DataOutputStream out;
    private final AuditCapture audit = AuditCapture.install();
    private final Map<String, Integer> indexes = new HashMap<>();
    private final Map<AclBinding, Integer> bindings = new HashMap<>();
    private StandardAuthorizer authorizer;
    private int known;

    private Oracle(DataInputStream in, DataOutputStream out) {
        this.in = in;
        this.out = out;
    }

    public static void main(String[] args) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(FileDescriptor.in), 1 << 16));
        DataOutputStream out =
            new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16));
        System.setOut(System.err);
        Oracle oracle = new Oracle(in, out);
        oracle.warmUp();
        for (int letter = in.read(); letter >= 0; letter = in.read()) {
            oracle.serve((char) letter);
            out.flush();
        }
        System.exit(0);  // a decision that never returns may still be running
    }

    /** Classes that load slowly do so here, and not while the watch over a decision runs. */
    private void warmUp() throws IOException {
        load(JSON.readTree("{\"acls\": []}"));
        String ask = "{\"principal\": \"User:a\", \"host\": \"10.0.0.1\", \"operation\": \"READ\", "
            + "\"resourceType\": \"TOPIC\", \"resourceName\": \"t\", \"kind\": \"";
        for (String kind : List.of("authorize", "byResourceType")) {
            auditOf(JSON.readTree(ask + kind + "\"}"));
        }
    }

    private void serve(char letter) throws IOException {
        JsonNode message = JSON.readTree(in.readNBytes(in.readInt()));
        switch (letter) {
            case 'L' -> answer(load(message));
            case 'C' -> answer(change(message));
            case 'F' -> answer(filter(message));
            case 'A' -> answer(auditOf(message));
            case 'D' -> decide(message);
            default -> throw new IOException("unknown letter " + letter);
        }
    }

    private void answer(JsonNode node) throws IOException {
        byte[] bytes = JSON.writeValueAsBytes(node);
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    private ObjectNode load(JsonNode estate) {
        authorizer = new StandardAuthorizer();
        addMetrics(authorizer);
        indexes.clear();
        bindings.clear();
        known = 0;
        ObjectNode reply = JSON.createObjectNode();
        try {
            Map<String, Object> config = new HashMap<>();
            for (String key : List.of("super.users", "allow.everyone.if.no.acl.found")) {
                if (estate.hasNonNull(key)) {
                    config.put(key, estate.get(key).asText());
                }
            }
            authorizer.configure(config);
            Map<Uuid, StandardAcl> acls = new HashMap<>();
            ArrayNode texts = reply.putArray("texts");
            for (JsonNode row : estate.get("acls")) {
                acls.put(Uuid.fromString(row.get(0).asText()), remember(acl(row), texts));
            }
            authorizer.loadSnapshot(acls);
            if (estate.path("ready").asBoolean(true)) {
                authorizer.completeInitialLoad();
            }
        } catch (RuntimeException e) {
            reply.put("error", e.toString());
        }
        return reply;
    }

    /** Since 4.1 an authorizer has no metrics of its own and needs those of a broker (KIP-877). */
    private static void addMetrics(StandardAuthorizer authorizer) {
        try {
            Class<?> metrics = Class.forName("org.apache.kafka.common.metrics.PluginMetrics");
            Object made = Class.forName("org.apache.kafka.common.metrics.internals.PluginMetricsImpl")
                .getConstructor(Metrics.class, Map.class)
                .newInstance(new Metrics(), Map.of());
            StandardAuthorizer.class.getMethod("withPluginMetrics", metrics).invoke(authorizer, made);
        } catch (ClassNotFoundException | NoSuchMethodException e) {
            // a release before 4.1
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private ObjectNode change(JsonNode changes) {
        ObjectNode reply = JSON.createObjectNode();
        ArrayNode texts = reply.putArray("texts");
        ArrayNode errors = reply.putArray("errors");
        for (JsonNode row : changes.get("rows")) {
            try {
                Uuid id = Uuid.fromString(row.get(0).asText());
                if (row.size() == 1) {
                    authorizer.removeAcl(id);
                } else {
                    authorizer.addAcl(id, remember(acl(row), texts));
                }
                errors.addNull();
            } catch (RuntimeException e) {
                errors.add(e.toString());
            }
        }
        return reply;
    }

    private StandardAcl remember(StandardAcl acl, ArrayNode texts) {
        texts.add(acl.toString());
        indexes.put("MatchingAcl(acl=" + acl + ")", known);
        try {
            bindings.put(acl.toBinding(), known);
        } catch (RuntimeException e) {
            // a pattern that only a record can carry has no binding
        }
        known++;
        return acl;
    }

    private static StandardAcl acl(JsonNode row) {
        return StandardAcl.fromRecord(new AccessControlEntryRecord()
            .setId(Uuid.fromString(row.get(0).asText()))
            .setResourceType((byte) row.get(1).asInt())
            .setResourceName(row.get(2).asText())
            .setPatternType((byte) row.get(3).asInt())
            .setPrincipal(row.get(4).asText())
            .setHost(row.get(5).asText())
            .setOperation((byte) row.get(6).asInt())
            .setPermissionType((byte) row.get(7).asInt()));
    }

    private ObjectNode filter(JsonNode row) {
        ObjectNode reply = JSON.createObjectNode();
        try {
            AclBindingFilter filter = new AclBindingFilter(
                new ResourcePatternFilter(
                    ResourceType.fromCode((byte) row.get(0).asInt()),
                    row.get(1).textValue(),
                    PatternType.fromCode((byte) row.get(2).asInt())),
                new AccessControlEntryFilter(
                    row.get(3).textValue(),
                    row.get(4).textValue(),
                    AclOperation.fromCode((byte) row.get(5).asInt()),
                    AclPermissionType.fromCode((byte) row.get(6).asInt())));
            ArrayNode found = JSON.createArrayNode();
            authorizer.acls(filter).forEach(binding -> found.add(bindings.get(binding)));
            reply.set("found", found);
        } catch (RuntimeException e) {
            reply.put("error", e.toString());
        }
        return reply;
    }

    private ObjectNode auditOf(JsonNode message) {
        ObjectNode reply = JSON.createObjectNode();
        audit.start(true);
        try {
            Request request = Request.of(message);
            reply.put("result", request.ask(authorizer).toString());
        } catch (RuntimeException e) {
            reply.put("error", e.toString());
        }
        ArrayNode lines = reply.putArray("lines");
        audit.lines().forEach(lines::add);
        audit.start(false);
        return reply;
    }

    private void decide(JsonNode message) throws IOException {
        List<String> strings = new ArrayList<>();
        message.get("strings").forEach(node -> strings.add(node.asText()));
        int count = in.readInt();
        ByteBuffer rows = ByteBuffer.wrap(in.readNBytes(count * Request.ROW_BYTES));
        Decider decider = new Decider(authorizer, audit, indexes, strings.toArray(new String[0]), rows, count);
        decider.run(message.path("hangMillis").asInt(200));
        out.write(decider.letters);
        ByteBuffer rules = ByteBuffer.allocate(4 * count);
        rules.asIntBuffer().put(decider.rules);
        out.write(rules.array());
        ArrayNode errors = JSON.createArrayNode();
        decider.errors.forEach(errors::add);
        answer(errors);
    }

}
