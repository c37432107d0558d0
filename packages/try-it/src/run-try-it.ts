import { type Extension, runService } from '@customer-authorization/service';
import type { Configuration } from '@customer-authorization/service/grant';
import { claimDemoRegistry, demoRegistry } from './demo-registry.js';
import type { ExtensionPage } from './try-it.controller.js';
import { tryItModule } from './try-it.module.js';
import { welcome } from './welcome.js';

/**
 * Runs the service as `runService` does, with the try-it page. If nothing is configured yet, it also creates a demo
 * registry, and prints how to try the service.
 *
 * @param extension an extension that the service has too
 * @param page the page of the extension, to which the try-it page links
 */
export async function runTryIt(extension: Extension = {}, page?: ExtensionPage): Promise<void> {
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
    ...extension,
    modules: [...(extension.modules ?? []), tryItModule(page)],
    registryFile(configuration) {
      isDemo = isFirstRun(configuration);
      if (!isDemo) return undefined;
      const path = demoRegistry(configuration.DATA_DIR, configuration.AUTH_URL, page?.grantTypes);
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
