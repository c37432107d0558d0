import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { testRegistry } from '../support/test-registry.js';
import { request } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const EXAMPLES = join(import.meta.dirname, '../../examples/integrating');
const example = (name: string) => readFileSync(join(EXAMPLES, 'resource-server', name), 'utf8');

const service = useService({ registry: testRegistry() });

describe('the configurations of proxies and Spring', () => {
  it('resource-server/nginx.conf sends tokens to auth-service.js, and never straight to introspection', () => {
    expect(example('nginx.conf')).toContain('auth_request /auth;');
    expect(example('nginx.conf')).not.toContain('/oauth2/introspect');
    expect(example('auth-service.js')).toContain('?? 9000');
  });

  it('resource-server/nginx.conf, resource-server/envoy.yaml and resource-server/apache.conf replace the headers of a caller', () => {
    const { claim_to_headers } = parse(example('envoy.yaml')).typed_config.providers.customers;
    const headers = { 'X-Customer-Id': 'sub', 'X-Organization-Id': 'organization_id' };
    for (const [header_name, claim_name] of Object.entries(headers)) {
      const variable = header_name.slice(2).toLowerCase().replace('-', '_');
      expect(example('nginx.conf')).toContain(`auth_request_set $${variable} $upstream_http_x_${variable};`);
      expect(example('nginx.conf')).toContain(`proxy_set_header ${header_name} $${variable};`);
      expect(example('auth-service.js')).toContain(`'${header_name}': claims.${claim_name}`);
      expect(claim_to_headers).toContainEqual({ header_name, claim_name });
      expect(example('apache.conf')).toContain(`RequestHeader set ${header_name} "%{OIDC_CLAIM_${claim_name}}e"`);
    }
  });

  it('resource-server/envoy.yaml and resource-server/apache.conf name the agent that speaks, and no agent that the caller names', () => {
    const { claim_to_headers } = parse(example('envoy.yaml')).typed_config.providers.customers;
    expect(claim_to_headers).toContainEqual({ header_name: 'X-Agent-Id', claim_name: 'act.sub' });
    const lines = ['RequestHeader unset X-Act', 'RequestHeader set X-Act "%{OIDC_CLAIM_act}e" env=OIDC_CLAIM_act'];
    expect(example('apache.conf')).toContain(lines.map((line) => `  ${line}\n`).join(''));
  });

  it('resource-server/envoy.yaml has the issuer, keys, audience and region prefix of npm start', async () => {
    const { customers } = parse(example('envoy.yaml')).typed_config.providers;
    const { http_uri } = customers.remote_jwks;
    expect((await request(http_uri.uri.replace(customers.issuer, service.url), {})).body.keys).toHaveLength(1);
    const header = `Bearer ${(await newCustomer(service)).access_token}`;
    expect(header.startsWith(customers.from_headers[0].value_prefix)).toBe(true);
    expect(customers.audiences).toEqual(['customer-api']);
  });

  it('resource-server/spring.yaml, resource-server/TokenResolver.java and resource-server/apache.conf suit introspection', () => {
    const { opaquetoken } = parse(example('spring.yaml')).spring.security.oauth2.resourceserver;
    const [, url] = /^OIDCOAuthIntrospectionEndpoint (\S+)$/m.exec(example('apache.conf')) ?? [];
    for (const each of [opaquetoken['introspection-uri'], url])
      expect(new URL(each).pathname).toBe('/oauth2/introspect');
    expect(example('TokenResolver.java')).toContain('BearerTokenResolver');
  });
});
