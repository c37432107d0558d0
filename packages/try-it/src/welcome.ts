import { resolve } from 'node:path';
import type { Service } from '@customer-authorization/service';
import { Configuration } from '@customer-authorization/service/grant';
import { DEMO } from './demo-registry.js';

/** The output of a first run: the URL of the try-it page, and commands to paste. */
export function welcome(service: Service): string {
  const { DATA_DIR, TRY_IT, AUTH_URL } = service.application.get(Configuration);
  const demoRegistry = resolve(DATA_DIR, 'demo-registry.yaml');
  const customerUrl = `http://localhost:${service.port}/v2/customer`;
  const body = (hasOrganization: boolean) =>
    JSON.stringify({
      grant_type: 'cookie',
      client_id: DEMO.clientId,
      response_type: 'token',
      ...(hasOrganization && { organization_id: DEMO.organizationId }),
    });
  return `
${TRY_IT ? `Try the service in a browser: ${AUTH_URL}/try\n` : ''}Clients, agents and passwords: ${demoRegistry} (after a change: npm run -s cli -- registry apply ${demoRegistry})
# a new customer
curl -s -c cookies.txt ${customerUrl}/token -d '${body(true)}'
# the same customer, returning
curl -s -b cookies.txt -c cookies.txt ${customerUrl}/token -d '${body(true)}'
# the same browser in a group: a customer of its own
curl -s -b cookies.txt -c cookies.txt ${customerUrl}/${DEMO.organizationId}/support/token -d '${body(false)}'
`;
}
