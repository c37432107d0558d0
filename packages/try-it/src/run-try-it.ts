import { runService } from '@customer-authorization/service';
import type { Configuration } from '@customer-authorization/service/grant';
import { claimDemoRegistry, demoRegistry } from './demo-registry.js';
import { TryItModule } from './try-it.module.js';
import { welcome } from './welcome.js';

/**
 * Runs the service as `runService` does, with the try-it page. If nothing is configured yet, it also creates a demo
 * registry, and prints how to try the service.
 */
export async function runTryIt(): Promise<void> {
  const {
    TRY_IT,
    TRY_IT_FILE,
    NODE_ENV = '',
    NODE_ENV_FILE,
    PORT,
    MANAGEMENT_PORT,
    MANAGEMENT_PORT_FILE,
  } = process.env;
  const isDevelopment = ['', 'development', 'test'].includes(NODE_ENV.trim()) && !NODE_ENV_FILE;
  if (!TRY_IT && !TRY_IT_FILE && isDevelopment) process.env.TRY_IT = 'true';
  // otherwise a second service would collide at the default
  if (PORT?.trim() === '0' && !MANAGEMENT_PORT && !MANAGEMENT_PORT_FILE) process.env.MANAGEMENT_PORT = '0';
  let isDemo = false;
  const service = await runService({
    modules: [TryItModule],
    registryFile(configuration) {
      isDemo = isFirstRun(configuration);
      if (!isDemo) return undefined;
      const path = demoRegistry(configuration.DATA_DIR, configuration.AUTH_URL);
      claimDemoRegistry(configuration.DATA_DIR);
      return path;
    },
  });
  if (isDemo) process.stdout.write(welcome(service));
}

/** Whether only the embedded database is there to use. */
function isFirstRun({ embedded, NODE_ENV }: Configuration): boolean {
  return embedded && NODE_ENV !== 'production';
}
