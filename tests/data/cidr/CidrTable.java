import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.commons.net.util.SubnetUtils;
import org.apache.commons.net.util.SubnetUtils6;

/**
 * Which hosts Kafka's CidrUtils (KIP-1276) finds in a range, by the classes of commons-net that it asks: the one for
 * IPv6 if the text has a colon, else the one for IPv4, with its first and last address. The first line of stdin has the
 * hosts, each other line one text; a line of output is `refused`, or the places of the hosts that are in the range.
 */
public final class CidrTable {
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        String[] hosts = in.readLine().split(" ");
        for (String text = in.readLine(); text != null; text = in.readLine()) {
            out.println(answer(text, hosts));
        }
        out.flush();
    }

    private static String answer(String text, String[] hosts) {
        SubnetUtils four = null;
        SubnetUtils6 six = null;
        try {
            if (text.contains(":")) {
                six = new SubnetUtils6(text);
            } else {
                four = new SubnetUtils(text);
                four.setInclusiveHostCount(true);
            }
        } catch (IllegalArgumentException e) {
            return "refused";
        }
        StringBuilder inside = new StringBuilder();
        for (int i = 0; i < hosts.length; i++) {
            try {
                if (six == null ? four.getInfo().isInRange(hosts[i]) : six.getInfo().isInRange(hosts[i])) {
                    inside.append(inside.length() == 0 ? "" : " ").append(i);
                }
            } catch (IllegalArgumentException e) {
                // an address of the other family
            }
        }
        return inside.toString();
    }
}
