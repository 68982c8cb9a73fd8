package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntConsumer;
import org.slf4j.LoggerFactory;

/**
 * Kafka's command line tools behind a pipe, many runs in one JVM: a line of JSON {"main": class, "args": [...]}
 * in, a line {"code": exit code, "out": ..., "err": ...} out. A tool that calls exit does not come back, as in a
 * process of its own: its thread is left waiting. tests/support/kafka/tools.py is the other end.
 */
public final class ToolPipe {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long SECONDS = 90;
    private static final int TIMED_OUT = -1;
    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();
    /** The same in all runs: Scala's println keeps the stream that it sees first. */
    private static final PrintStream OF_OUT = new PrintStream(OUT, true, StandardCharsets.UTF_8);
    private static final PrintStream OF_ERR = new PrintStream(ERR, true, StandardCharsets.UTF_8);

    private ToolPipe() { }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        LoggerFactory.getLogger(ToolPipe.class).debug("binds the logger to the stream that is no tool's");
        BufferedReader in =
            new BufferedReader(new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line))));
        }
        Runtime.getRuntime().halt(0);
    }

    private static JsonNode run(JsonNode ask) throws Exception {
        OUT.reset();
        ERR.reset();
        PrintStream realOut = System.out;
        PrintStream realErr = System.err;
        System.setOut(OF_OUT);
        System.setErr(OF_ERR);
        int code;
        try {
            code = exitCode(ask);
        } finally {
            System.setOut(realOut);
            System.setErr(realErr);
        }
        return JSON.createObjectNode()
            .put("code", code)
            .put("out", OUT.toString(StandardCharsets.UTF_8))
            .put("err", ERR.toString(StandardCharsets.UTF_8));
    }

    private static int exitCode(JsonNode ask) throws Exception {
        String[] args = JSON.convertValue(ask.get("args"), String[].class);
        Method main = Class.forName(ask.get("main").asText()).getMethod("main", String[].class);
        CompletableFuture<Integer> ended = new CompletableFuture<>();
        onExit(code -> {
            ended.complete(code);
            waitForever();
        });
        Thread tool = new Thread(() -> {
            try {
                main.invoke(null, (Object) args);
                ended.complete(0);
            } catch (InvocationTargetException e) {
                e.getCause().printStackTrace();
                ended.complete(1);
            } catch (IllegalAccessException e) {
                ended.completeExceptionally(e);
            }
        });
        tool.setDaemon(true);
        tool.start();
        try {
            return ended.get(SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            return TIMED_OUT;
        }
    }

    /** Calls an action instead of ending the JVM. Kafka's Exit is in another package since 4.4. */
    private static void onExit(IntConsumer action) throws ReflectiveOperationException {
        Class<?> exit = exitClass();
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        InvocationHandler handler = (proxy, method, arguments) -> {
            if (method.getName().equals("execute")) {
                action.accept((Integer) arguments[0]);
            }
            return null;
        };
        Object made = Proxy.newProxyInstance(procedure.getClassLoader(), new Class<?>[] {procedure}, handler);
        for (String setter : new String[] {"setExitProcedure", "setHaltProcedure"}) {
            exit.getMethod(setter, procedure).invoke(null, made);
        }
    }

    private static Class<?> exitClass() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.utils.Exit");
        } catch (ClassNotFoundException e) {
            return Class.forName("org.apache.kafka.common.utils.internals.Exit");
        }
    }

    private static void waitForever() {
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException(e);
            }
        }
    }
}
