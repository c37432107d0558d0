import type { OpenApiResponsesDocument } from '../../packages/conformance-kit/src/openapi-responses.js';
import { startFuzzedService } from './fuzzed-service.js';
import { Health } from './health.js';
import type { OpenApi } from './operations.js';
import { type Figures, type FuzzOptions, Run } from './run.js';
import { checkSlowCallers } from './slow-callers.js';
import { World } from './world.js';

/** Sends requests to a process of the service and checks each response. Rejects at the first violation. */
export async function fuzz(options: FuzzOptions): Promise<Figures> {
  const service = await startFuzzedService();
  try {
    const document = (await (await fetch(`${service.managementUrl}/openapi.json`)).json()) as OpenApi &
      OpenApiResponsesDocument;
    const run = new Run(
      options,
      { public: service.url, management: service.managementUrl },
      document,
      new World(service.agents),
    );
    const health = new Health(service);
    await health.check();
    const slow = options.slow ? checkSlowCallers(service.url) : undefined;
    slow?.catch(() => undefined);
    const quarter = Math.floor(options.requests / 4);
    await run.send(0, quarter);
    const earlyMegabytes = await health.check();
    await run.send(quarter, options.requests);
    await slow;
    const lateMegabytes = await health.check();
    if (lateMegabytes > earlyMegabytes * 1.3 + 50)
      throw new Error(`memory grew from ${earlyMegabytes} MB to ${lateMegabytes} MB`);
    return run.figures([earlyMegabytes, lateMegabytes]);
  } finally {
    await service.remove();
  }
}
