import { resolve } from 'node:path';
import type { Service } from './bootstrap.js';
import type { Configuration } from './platform/configuration/configuration.js';
import { DEMO } from './registry/demo-registry.js';

/** Says on which ports the service listens. */
export function listeningMessage(configuration: Configuration, service: Service): string {
  const { AUTH_URL, HOST = 'all addresses' } = configuration;
  const ports = [`port ${service.port} for callers (${AUTH_URL})`, `port ${service.managementPort} for the cluster`];
  if (service.adminPort !== undefined) ports.push(`port ${service.adminPort} for administration`);
  if (service.metricsPort !== undefined) ports.push(`port ${service.metricsPort} for metrics`);
  return `listening on ${HOST}: ${ports.join(', ')}`;
}

/** The URL of the try-it page. It is the first output, and precedes the log of the start. */
export function tryItMessage({ TRY_IT, AUTH_URL }: Configuration): string {
  return TRY_IT ? `\nTry the service in a browser: ${AUTH_URL}/try\n\n` : '';
}

/** The output of a first run: the URL of the try-it page, the ports of the service, and commands to paste. */
export function welcome(configuration: Configuration, service: Service): string {
  const { DATA_DIR } = configuration;
  const customerUrl = `http://localhost:${service.port}/v2/customer`;
  const body = (hasOrganization: boolean) =>
    JSON.stringify({
      grant_type: 'cookie',
      client_id: DEMO.clientId,
      response_type: 'token',
      ...(hasOrganization && { organization_id: DEMO.organizationId }),
    });
  return `${tryItMessage(configuration)}${listeningMessage(configuration, service)}

Clients, their origins, agents and passwords: ${resolve(DATA_DIR, 'demo-registry.yaml')}
The service applies changes of this file without a restart.

Paste these:

# a new customer
curl -s -c cookies.txt ${customerUrl}/token -d '${body(true)}'

# the same customer, returning
curl -s -b cookies.txt -c cookies.txt ${customerUrl}/token -d '${body(true)}'

# the same browser in a group: an identity of its own
curl -s -b cookies.txt -c cookies.txt ${customerUrl}/${DEMO.organizationId}/support/token -d '${body(false)}'

`;
}
