package aclog;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;

/**
 * Answers a table of requests in a thread of its own, so that one on which Kafka loops for ever can be given up: it is
 * an H once the thread has burnt {@code hangMillis} of CPU on it.
 */
final class Decider {
    static final int DEFAULT_DENY = -1;
    static final int DEFAULT_ALLOW = -2;
    static final int SUPER_USER = -3;
    static final int NO_LINE = -4;
    static final int HANG = -5;
    /** Error k of {@link #errors} is rule FIRST_ERROR - k. */
    static final int FIRST_ERROR = -10;

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final String BASED_ON = " based on rule ";

    final byte[] letters;
    final int[] rules;
    final List<String> errors = new ArrayList<>();

    private final Authorizer authorizer;
    private final AuditCapture audit;
    private final Map<String, Integer> indexes;
    private final String[] strings;
    private final ByteBuffer rows;
    private final int count;
    private volatile int next;

    Decider(
        Authorizer authorizer,
        AuditCapture audit,
        Map<String, Integer> indexes,
        String[] strings,
        ByteBuffer rows,
        int count) {
        this.authorizer = authorizer;
        this.audit = audit;
        this.indexes = indexes;
        this.strings = strings;
        this.rows = rows;
        this.count = count;
        this.letters = new byte[count];
        this.rules = new int[count];
    }

    void run(int hangMillis) {
        while (next < count) {
            Thread worker = new Thread(this::work, "decider");
            worker.setDaemon(true);
            worker.start();
            if (!finishes(worker, hangMillis * 1_000_000L)) {
                letters[next] = 'H';
                rules[next] = HANG;
                next++;
            }
        }
    }

    private boolean finishes(Thread worker, long hangNanos) {
        int seen = -1;
        long since = 0;
        try {
            for (worker.join(10); worker.isAlive(); worker.join(10)) {
                long cpu = Math.max(0, THREADS.getThreadCpuTime(worker.getId()));
                if (next != seen) {
                    seen = next;
                    since = cpu;
                } else if (cpu - since > hangNanos) {
                    giveUp(worker);
                    return false;
                }
            }
            return true;
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @SuppressWarnings({"deprecation", "removal"})
    private static void giveUp(Thread worker) throws InterruptedException {
        try {
            worker.stop();
            worker.join(1000);
        } catch (UnsupportedOperationException e) {
            worker.setPriority(Thread.MIN_PRIORITY);  // a JDK 20 or later cannot: it goes on, as a daemon
        }
    }

    private void work() {
        Map<Long, AuthorizableRequestContext> contexts = new HashMap<>();
        for (int i = next; i < count; i++) {
            audit.start(false);
            try {
                AuthorizationResult result = Request.of(rows, i, strings, contexts).ask(authorizer);
                letters[i] = (byte) (result == AuthorizationResult.ALLOWED ? 'A' : 'D');
                rules[i] = ruleOf(audit.lines());
            } catch (ThreadDeath e) {
                throw e;
            } catch (Throwable e) {
                letters[i] = 'E';
                rules[i] = FIRST_ERROR - errors.size();
                errors.add(e.getClass().getName() + ": " + e.getMessage());
            }
            next = i + 1;
        }
    }

    private int ruleOf(List<String> lines) {
        if (lines.isEmpty()) {
            return NO_LINE;
        }
        String line = lines.get(0);
        String rule = line.substring(line.indexOf(BASED_ON) + BASED_ON.length());
        Integer index = indexes.get(rule);
        if (index != null) {
            return index;
        }
        return switch (rule) {
            case "DefaultDeny" -> DEFAULT_DENY;
            case "DefaultAllow" -> DEFAULT_ALLOW;
            case "SuperUser" -> SUPER_USER;
            default -> throw new AssertionError("a rule that no ACL of this estate has: " + line);
        };
    }
}
