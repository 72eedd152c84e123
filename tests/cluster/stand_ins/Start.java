package slices;

import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginBundle;
import org.elasticsearch.plugins.PluginsLoader;

/** Starts a node in this process, without the agent and the launcher of the usual start. */
public class Start {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        LogConfigurator.registerErrorListener();
        LogConfigurator.configureESLogging();
        Settings paths = Settings.builder()
            .put("path.home", System.getProperty("es.path.home"))
            .put("path.data", folder.resolve("data").toString())
            .put("path.logs", folder.resolve("logs").toString())
            .build();
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            paths, Map.of(), folder.resolve("config"), () -> folder.getFileName().toString());
        LogConfigurator.setNodeName(folder.getFileName().toString());
        LogConfigurator.configure(environment, true);
        PluginsLoader loader = PluginsLoader.createPluginsLoader(
            bundles("loadModulesBundles", environment.modulesDir()),
            bundles("loadPluginsBundles", environment.pluginsDir()),
            Map.of(),
            false);
        Node node = new Node(environment, loader);
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.prepareForClose();
                node.close();
            } catch (Exception error) {
                error.printStackTrace();
            } finally {
                ended.countDown();
            }
        }));
        node.start();
        ended.await();
    }

    /** The bundles of a folder; 9.x takes one more argument than 8.19. */
    @SuppressWarnings("unchecked")
    private static Set<PluginBundle> bundles(String method, Path folder) throws Exception {
        try {
            return (Set<PluginBundle>) PluginsLoader.class
                .getMethod(method, Path.class, boolean.class).invoke(null, folder, false);
        } catch (NoSuchMethodException error) {
            return (Set<PluginBundle>) PluginsLoader.class
                .getMethod(method, Path.class).invoke(null, folder);
        }
    }
}
