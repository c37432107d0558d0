import type { Service } from './bootstrap.js';
import type { Configuration } from './platform/configuration/configuration.js';
import { DEMO } from './registry/demo-registry.js';

/** What a start prints: where the service listens and, at a first run, lines to paste. */
export function welcome(configuration: Configuration, { port, managementPort }: Service, demo: boolean): string {
  const { AUTH_URL, HOST = 'all addresses', DATA_DIR } = configuration;
  const where = `listening on ${HOST}: port ${port} for callers (${AUTH_URL}), port ${managementPort} for the cluster\n`;
  if (!demo) return where;
  const address = `http://localhost:${port}/v2/customer`;
  const body = (groupless: boolean) =>
    JSON.stringify({
      grant_type: 'cookie',
      client_id: DEMO.clientId,
      response_type: 'token',
      ...(groupless && { organization_id: DEMO.organizationId }),
    });
  return `${where}
The demo registry is in ${DATA_DIR}/demo-registry.yaml. Paste these:

# a new customer
curl -s -c cookies.txt ${address}/token -d '${body(true)}'

# the same customer, returning
curl -s -b cookies.txt -c cookies.txt ${address}/token -d '${body(true)}'

# the same browser in a group: an identity of its own
curl -s -b cookies.txt -c cookies.txt ${address}/${DEMO.organizationId}/support/token -d '${body(false)}'

`;
}
