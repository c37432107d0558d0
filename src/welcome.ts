import type { Service } from './bootstrap.js';
import type { Configuration } from './platform/configuration/configuration.js';
import { DEMO } from './registry/demo-registry.js';

/** Where the service listens. */
export function whereabouts(configuration: Configuration, { port, managementPort }: Service): string {
  const { AUTH_URL, HOST = 'all addresses' } = configuration;
  return `listening on ${HOST}: port ${port} for callers (${AUTH_URL}), port ${managementPort} for the cluster`;
}

/** What a first run prints: where the service listens, and lines to paste. */
export function welcome(configuration: Configuration, service: Service): string {
  const { DATA_DIR } = configuration;
  const address = `http://localhost:${service.port}/v2/customer`;
  const body = (groupless: boolean) =>
    JSON.stringify({
      grant_type: 'cookie',
      client_id: DEMO.clientId,
      response_type: 'token',
      ...(groupless && { organization_id: DEMO.organizationId }),
    });
  return `${whereabouts(configuration, service)}

The demo registry is in ${DATA_DIR}/demo-registry.yaml. Paste these:

# a new customer
curl -s -c cookies.txt ${address}/token -d '${body(true)}'

# the same customer, returning
curl -s -b cookies.txt -c cookies.txt ${address}/token -d '${body(true)}'

# the same browser in a group: an identity of its own
curl -s -b cookies.txt -c cookies.txt ${address}/${DEMO.organizationId}/support/token -d '${body(false)}'

`;
}
