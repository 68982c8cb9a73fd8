package aclog;

import java.util.ArrayList;
import java.util.List;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.config.Property;
import org.apache.logging.log4j.core.config.builder.api.ConfigurationBuilder;
import org.apache.logging.log4j.core.config.builder.api.ConfigurationBuilderFactory;
import org.apache.logging.log4j.core.config.builder.impl.BuiltConfiguration;

/** Keeps what the authorizer says to its audit logger, at TRACE, since {@link #start}; every other logger is off. */
final class AuditCapture extends AbstractAppender {
    private static final String LOGGER = "kafka.authorizer.logger";

    private final List<String> lines = new ArrayList<>();
    private boolean withLevel;

    private AuditCapture() {
        super("capture", null, null, true, Property.EMPTY_ARRAY);
    }

    static AuditCapture install() {
        ConfigurationBuilder<BuiltConfiguration> builder = ConfigurationBuilderFactory.newConfigurationBuilder();
        builder.add(builder.newRootLogger(Level.OFF));
        LoggerContext context = Configurator.initialize(builder.build(false));
        AuditCapture capture = new AuditCapture();
        capture.start();
        LoggerConfig logger = new LoggerConfig(LOGGER, Level.TRACE, false);
        logger.addAppender(capture, Level.TRACE, null);
        context.getConfiguration().addLogger(LOGGER, logger);
        context.updateLoggers();
        return capture;
    }

    /** Forget what was kept; from now on each line begins with its level if {@code withLevel}. */
    void start(boolean withLevel) {
        this.withLevel = withLevel;
        lines.clear();
    }

    List<String> lines() {
        return lines;
    }

    @Override
    public void append(LogEvent event) {
        String message = event.getMessage().getFormattedMessage();
        lines.add(withLevel ? event.getLevel() + " " + message : message);
    }
}
