import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * HDFS of one NameNode and one DataNode, on free ports of the loopback interface, in a directory. Prints the URI of the
 * file system and that of WebHDFS, and stops once its input ends.
 */
final class Hdfs {
    private Hdfs() {}

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setBoolean("dfs.permissions.enabled", false);  // WebHDFS has no login here
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(configuration, new File(arguments[0])).numDataNodes(1).build();
        try {
            System.out.println(cluster.getURI() + " " + cluster.getHttpUri(0));
            while (System.in.read() != -1) {
                continue;
            }
        } finally {
            cluster.shutdown(true);
        }
    }
}
