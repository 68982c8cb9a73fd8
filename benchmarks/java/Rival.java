package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.FileRawSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotReader;

/**
 * The rival of the benchmarks: the real StandardAuthorizer and Kafka's own log readers, timed by thread CPU time. One
 * JSON command a line on stdin, one JSON answer a line on stdout; {@code benchmarks/rival.py} is the other end.
 */
public final class Rival {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final int MAX_BATCH = 8 * 1024 * 1024;
    private static final int ROUNDS = 7;

    private StandardAuthorizer authorizer;
    private int added;

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        System.setOut(System.err);
        Rival rival = new Rival();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(rival.run(JSON.readTree(line))));
            out.flush();
        }
    }

    private ObjectNode run(JsonNode command) throws IOException {
        return switch (command.get("do").asText()) {
            case "build" -> build(command);
            case "authorize" -> authorize(command);
            case "mixed" -> mixed(command);
            case "byResourceType" -> byResourceType(command);
            case "filter" -> filter(command);
            case "add" -> add(command);
            case "replay" -> replay(command);
            case "estate" -> estate(command);
            case "change" -> JSON.createObjectNode().put(
                "changes", Pass.change(authorizer, Path.of(command.get("file").asText())));
            case "pass" -> Pass.run(JSON, authorizer, command);
            default -> throw new IllegalArgumentException("unknown command " + command);
        };
    }

    private static StandardAuthorizer empty() {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        authorizer.configure(Map.of());
        return authorizer;
    }

    private ObjectNode build(JsonNode shape) {
        Map<Uuid, StandardAcl> acls = Estate.of(
            shape.get("resources").asInt(),
            shape.get("perResource").asInt(),
            shape.get("denyPercent").asInt(),
            shape.get("wildcards").asBoolean());
        authorizer = empty();
        added = 0;
        long start = cpu();
        authorizer.loadSnapshot(acls);
        authorizer.completeInitialLoad();
        return JSON.createObjectNode().put("rules", acls.size()).put("loadNanos", cpu() - start);
    }

    private ObjectNode estate(JsonNode command) throws IOException {
        authorizer = null;
        System.gc();
        Map<Uuid, StandardAcl> acls = Pass.estate(Path.of(command.get("file").asText()));
        StandardAuthorizer loaded = empty();
        long start = cpu();
        loaded.loadSnapshot(acls);
        loaded.completeInitialLoad();
        authorizer = loaded;
        return JSON.createObjectNode().put("rules", authorizer.aclCount()).put("loadNanos", cpu() - start);
    }

    private static long cpu() {
        return THREADS.getCurrentThreadCpuTime();
    }

    private static Request request(JsonNode row) {
        return Request.of(row);
    }

    /** The best of several rounds, each of as many calls as fill {@code roundMillis}; ns a call. */
    private static ObjectNode best(int roundMillis, LongSupplier callAndCount) {
        long deadline = cpu() + 3L * roundMillis * 1_000_000;
        long calls = 0;
        while (cpu() < deadline) {  // warm-up: the compiler sees the path as often as three rounds hold
            calls += callAndCount.getAsLong();
        }
        double best = Double.MAX_VALUE;
        List<Double> all = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            long start = cpu();
            long end = start + roundMillis * 1_000_000L;
            long done = 0;
            long now = start;
            while (now < end) {
                done += callAndCount.getAsLong();
                now = cpu();
            }
            double nanos = (double) (now - start) / done;
            all.add(nanos);
            best = Math.min(best, nanos);
        }
        ObjectNode answer = JSON.createObjectNode().put("nanos", best);
        all.forEach(answer.putArray("rounds")::add);
        return answer;
    }

    private ObjectNode authorize(JsonNode command) {
        Request request = request(command);
        List<Action> actions = List.of(request.action());
        int inner = command.path("inner").asInt(64);
        AuthorizationResult[] result = new AuthorizationResult[1];
        ObjectNode answer = best(command.path("roundMillis").asInt(200), () -> {
            for (int i = 0; i < inner; i++) {
                result[0] = authorizer.authorize(request.context(), actions).get(0);
            }
            return inner;
        });
        return answer.put("result", result[0].toString());
    }

    private ObjectNode mixed(JsonNode command) throws IOException {
        List<Request> requests = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(command.get("file").asText()))) {
            requests.add(request(JSON.readTree(line)));
        }
        int[] allowed = new int[1];
        ObjectNode answer = best(command.path("roundMillis").asInt(200), () -> {
            int count = 0;
            for (Request request : requests) {
                if (authorizer.authorize(request.context(), List.of(request.action())).get(0)
                    == AuthorizationResult.ALLOWED) {
                    count++;
                }
            }
            allowed[0] = count;
            return requests.size();
        });
        return answer.put("allowed", allowed[0]);
    }

    private ObjectNode byResourceType(JsonNode command) {
        Request request = request(command);
        AuthorizationResult[] result = new AuthorizationResult[1];
        ObjectNode answer = best(command.path("roundMillis").asInt(200), () -> {
            result[0] = request.ask(authorizer);
            return 1;
        });
        return answer.put("result", result[0].toString());
    }

    private ObjectNode filter(JsonNode command) {
        AclBindingFilter filter = new AclBindingFilter(
            new ResourcePatternFilter(ResourceType.TOPIC, command.get("name").asText(), PatternType.LITERAL),
            AccessControlEntryFilter.ANY);
        int[] found = new int[1];
        ObjectNode answer = best(command.path("roundMillis").asInt(200), () -> {
            int count = 0;
            for (AclBinding ignored : authorizer.acls(filter)) {
                count++;
            }
            found[0] = count;
            return 1;
        });
        return answer.put("found", found[0]);
    }

    private ObjectNode add(JsonNode command) {
        int count = command.get("count").asInt();
        long[] nanos = new long[count];
        for (int i = 0; i < count; i++, added++) {
            StandardAcl acl = new StandardAcl(
                ResourceType.TOPIC, "added-" + added, PatternType.LITERAL, "User:added-" + added % 100, "*",
                AclOperation.READ, AclPermissionType.ALLOW);
            Uuid id = Estate.id(1_000_000_000L + added);
            long start = cpu();
            authorizer.addAcl(id, acl);
            nanos[i] = cpu() - start;
        }
        Arrays.sort(nanos);
        return JSON.createObjectNode().put("p50", nanos[count / 2]).put("p99", nanos[count * 99 / 100]);
    }

    /** A checkpoint (with endOffset and epoch) or a segment, into an authorizer that decides: best of the rounds. */
    private ObjectNode replay(JsonNode command) throws IOException {
        ObjectNode answer = JSON.createObjectNode();
        long best = Long.MAX_VALUE;
        for (int round = 0; round < command.path("rounds").asInt(ROUNDS); round++) {
            authorizer = null;
            System.gc();
            long start = cpu();
            MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
            long records = command.has("endOffset") ? readCheckpoint(command, delta) : readSegments(command, delta);
            delta.finishSnapshot();
            long replayed = cpu();
            MetadataImage image = delta.apply(new MetadataProvenance(records, 1, 0, true));
            StandardAuthorizer loaded = empty();
            loaded.loadSnapshot(image.acls().acls());
            loaded.completeInitialLoad();
            long end = cpu();
            if (end - start < best) {
                best = end - start;
                answer.put("nanos", best).put("readNanos", replayed - start);
            }
            authorizer = loaded;
            answer.put("records", records).put("acls", authorizer.aclCount());
        }
        return answer;
    }

    private static long readCheckpoint(JsonNode command, MetadataDelta delta) throws IOException {
        OffsetAndEpoch id = new OffsetAndEpoch(command.get("endOffset").asLong(), command.get("epoch").asInt());
        long records = 0;
        try (FileRawSnapshotReader raw = FileRawSnapshotReader.open(Path.of(command.get("directory").asText()), id);
            RecordsSnapshotReader<ApiMessageAndVersion> reader = RecordsSnapshotReader.of(
                raw, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), MAX_BATCH, true, new LogContext())) {
            while (reader.hasNext()) {
                records += replayBatch(reader.next(), delta);
            }
        }
        return records;
    }

    private static long readSegments(JsonNode command, MetadataDelta delta) throws IOException {
        long records = 0;
        File[] files = new File(command.get("directory").asText()).listFiles((dir, name) -> name.endsWith(".log"));
        Arrays.sort(files);
        for (File file : files) {
            try (FileRecords bytes = FileRecords.open(file, false);
                RecordsIterator<ApiMessageAndVersion> reader = new RecordsIterator<>(
                    bytes, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), MAX_BATCH, true, new LogContext())) {
                while (reader.hasNext()) {
                    records += replayBatch(reader.next(), delta);
                }
            }
        }
        return records;
    }

    private static long replayBatch(Batch<ApiMessageAndVersion> batch, MetadataDelta delta) {
        for (ApiMessageAndVersion record : batch.records()) {
            delta.replay(record.message());
        }
        return batch.records().size();
    }
}
