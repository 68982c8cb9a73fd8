package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Estates, changes and lists of requests from files ({@code benchmarks/estates/files.py}), and passes over a list. */
final class Pass {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final int STEP = 16;

    private Pass() {
    }

    private record Asked(AuthorizableRequestContext context, List<Action> actions) {
    }

    static Map<Uuid, StandardAcl> estate(Path file) throws IOException {
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] row = line.split("\t", -1);
                acls.put(Estate.id(Long.parseLong(row[0]) + 1), rule(row));
            }
        }
        return acls;
    }

    static int change(StandardAuthorizer authorizer, Path file) throws IOException {
        List<String> lines = Files.readAllLines(file);
        for (String line : lines) {
            String[] row = line.split("\t", -1);
            Uuid id = Estate.id(Long.parseLong(row[0]) + 1);
            if (row.length == 1) {
                authorizer.removeAcl(id);
            } else {
                authorizer.addAcl(id, rule(row));
            }
        }
        return lines.size();
    }

    private static StandardAcl rule(String[] row) {
        return new StandardAcl(
            ResourceType.fromCode(Byte.parseByte(row[1])),
            row[5],
            PatternType.fromCode(Byte.parseByte(row[2])),
            row[6],
            row[7],
            AclOperation.fromCode(Byte.parseByte(row[3])),
            AclPermissionType.fromCode(Byte.parseByte(row[4])));
    }

    private static List<Asked> requests(Path file, boolean logIfDenied) throws IOException {
        Map<String, AuthorizableRequestContext> contexts = new HashMap<>();
        List<Asked> asked = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            String[] row = line.split("\t", -1);
            AuthorizableRequestContext context =
                contexts.computeIfAbsent(row[0] + "\t" + row[1], key -> new Request.Context(row[0], row[1], 1));
            ResourceType type = ResourceType.fromCode(Byte.parseByte(row[3]));
            ResourcePattern pattern = new ResourcePattern(type, row[4], PatternType.LITERAL);
            AclOperation operation = AclOperation.fromCode(Byte.parseByte(row[2]));
            asked.add(new Asked(context, List.of(new Action(operation, pattern, 1, true, logIfDenied))));
        }
        return asked;
    }

    /**
     * Asks the list until {@code budgetMillis} of CPU are used, at least one pass and at most {@code passes}; a first pass
     * that takes longer is cut short. The answer has the mean of the first pass and of the best one after it, in ns, and
     * the decisions of the first.
     */
    static ObjectNode run(ObjectMapper json, StandardAuthorizer authorizer, JsonNode command) throws IOException {
        Path file = Path.of(command.get("file").asText());
        int passes = command.get("passes").asInt();
        List<Asked> asked = requests(file, command.path("logIfDenied").asBoolean(false));
        StringBuilder decisions = new StringBuilder();
        long budget = command.get("budgetMillis").asInt() * 1_000_000L;
        long begin = THREADS.getCurrentThreadCpuTime();
        double first = 0;
        double best = Double.MAX_VALUE;
        int size = asked.size();
        int pass = 0;
        for (; pass < passes; pass++) {
            long start = THREADS.getCurrentThreadCpuTime();
            int done = 0;
            boolean late = false;
            while (done < size && !late) {
                int end = Math.min(done + STEP, size);
                for (; done < end; done++) {
                    Asked each = asked.get(done);
                    AuthorizationResult result = authorizer.authorize(each.context(), each.actions()).get(0);
                    if (pass == 0) {
                        decisions.append(result == AuthorizationResult.ALLOWED ? 'A' : 'D');
                    }
                }
                late = THREADS.getCurrentThreadCpuTime() - begin > budget;
            }
            double mean = (double) (THREADS.getCurrentThreadCpuTime() - start) / done;
            if (pass == 0) {
                first = mean;
                size = done;
                budget *= 2;
            } else {
                best = done < size && best < Double.MAX_VALUE ? best : Math.min(best, mean);
                if (late) {
                    break;
                }
            }
        }
        return json.createObjectNode()
            .put("first", first)
            .put("again", best == Double.MAX_VALUE ? first : best)
            .put("passes", pass)
            .put("decisions", decisions.toString());
    }
}
