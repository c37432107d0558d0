import { readFileSync } from 'node:fs';
import { Get, Module } from '@nestjs/common';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Validator } from '@seriousme/openapi-schema-validator';
import { IsString } from 'class-validator';
import { beforeAll, describe, expect, it } from 'vitest';
import { OAuthError } from '../../../src/oauth/oauth-error.js';
import { EXAMPLE } from '../../../src/platform/http/api-examples.js';
import { ApiRoute } from '../../../src/platform/http/api-route.js';
import { PublicController } from '../../../src/platform/http/listener.decorators.js';
import { JWT_BEARER } from '../../support/assertion-issuer.js';
import { LottoTickets1795300000000 } from '../../support/lotto-grant/1795300000000-lotto-tickets.js';
import { LottoGrantModule } from '../../support/lotto-grant/lotto-grant.module.js';
import { request } from '../../support/test-service.js';
import { useService } from '../../support/use-service.js';

class DocumentedResponse {
  @IsString()
  documented!: string;
}

/** Its responses differ from its OpenAPI description. */
@PublicController('mismatch')
class MismatchController {
  @Get('answer')
  @ApiRoute({ summary: 'Returns something else', response: DocumentedResponse })
  answer(): object {
    return { documented: 'text', secret: 'and more' };
  }

  @Get('status')
  @ApiRoute({ summary: 'Returns a status that it does not describe', response: DocumentedResponse })
  status(): never {
    throw OAuthError.invalidRequest('anything');
  }
}

@Module({ controllers: [MismatchController] })
class MismatchModule {}

const service = useService({
  modules: [LottoGrantModule, MismatchModule],
  migrations: [LottoTickets1795300000000],
});
// biome-ignore lint/suspicious/noExplicitAny: tests look into it
let document: any;
beforeAll(async () => {
  ({ body: document } = await request(`${service.managementUrl}/openapi.json`, {}));
});

const methodsOf = (path: string) => Object.keys(document.paths[path]).filter((name) => name !== 'servers');
const bodyOf = (path: string) => document.paths[path].post.requestBody.content['application/json'].schema;
const responseSchemaOf = (path: string) => document.paths[path].post.responses[200].content['application/json'].schema;

describe('/openapi.json on the management port', () => {
  it('is an OpenAPI 3.1 document', async () => {
    expect(await new Validator().validate(document)).toMatchObject({ valid: true });
    expect(document.info.version).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version);
  });

  it('has every route that the service serves, and no other', () => {
    const { router } = service.application.getHttpAdapter().getInstance();
    const served = router.stack
      .filter(({ route }: { route?: object }) => route)
      .map(({ route }: { route: { path: string; methods: object } }) => {
        const path = route.path.replace(/^\/(public|management)/, '').replace(/:(\w+)/g, '{$1}');
        return `${Object.keys(route.methods)[0]} ${path.replace(/(.)\/$/, '$1') || '/'}`;
      });
    const documented = Object.keys(document.paths).flatMap((path) =>
      methodsOf(path).map((each) => `${each} ${path.replace(/(.)\/$/, '$1')}`),
    );
    // a file of the agents' pages is no route for callers
    const described = served.filter((route: string) => route !== 'get /page.css');
    expect(documented.sort()).toEqual([...new Set(described)].sort());
    expect(documented.length).toBeGreaterThan(30);
  });
});

describe('a person who reads the OpenAPI document', () => {
  const operations = () =>
    Object.values<Record<string, { operationId: string; tags: string[] }>>(document.paths).flatMap(
      ({ servers: _servers, ...methods }) => Object.values(methods),
    );

  it('finds a name that says what an operation does, and each once', () => {
    const ids = operations().map(({ operationId }) => operationId);
    expect(ids).toEqual(expect.arrayContaining(['createCustomerToken', 'listResourceServers', 'deleteAgent']));
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]{4,40}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('finds the operations under a few subjects', () => {
    const names = document.tags.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(['Customers', 'Agents', 'Resource servers', 'Administration']));
    for (const { tags } of operations()) expect(names).toContain(tags[0]);
  });

  it('finds the codes of the errors in the description, and one schema of all errors', () => {
    const { description, responses } = document.paths['/v2/customer/token'].post;
    expect(description).toMatch(
      /Errors: 400 .*`invalid_grant`.*; 401 `invalid_token`; .*503 `temporarily_unavailable`\.$/s,
    );
    expect(responses[400]).toEqual({ $ref: '#/components/responses/Error' });
  });

  it('can give each pattern to the tools of another language', () => {
    const patterns = [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)];
    expect(patterns.length).toBeGreaterThan(5);
    for (const [, pattern = ''] of patterns) expect(JSON.parse(pattern)).not.toMatch(/\\[pP]\{|\(\?<|\\[dDwW]\{0/);
  });
});

describe('/openapi.json on the public port', () => {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it
  let part: any;
  let text: string;
  beforeAll(async () => {
    ({ body: part, text } = await request(`${service.url}/openapi.json`, {}));
  });

  it('is an OpenAPI 3.1 document for any caller, and is JSON', async () => {
    expect(await new Validator().validate(part)).toMatchObject({ valid: true });
    const { headers } = await request(`${service.url}/openapi.json`, {});
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  it('has every path of the public port, described as on the management port, and no other path', () => {
    const isPublic = (path: string) => document.paths[path].servers[0].url !== '/';
    expect(Object.keys(part.paths)).toEqual(Object.keys(document.paths).filter(isPublic));
    for (const [path, { servers, ...operations }] of Object.entries<Record<string, unknown>>(part.paths)) {
      expect(servers).toEqual([{ url: 'https://auth.example', description: 'Public port' }]);
      if (document.paths[path].servers.length > 1) continue;
      for (const [method, operation] of Object.entries(operations))
        expect(operation).toEqual(document.paths[path][method]);
    }
  });

  it('names no route, credential or term of the management port', () => {
    expect(text).not.toMatch(/management|operator|admin|introspect|oauth2|resource.server|metrics|health|registry/i);
    expect(Object.keys(part.components.securitySchemes).sort()).toEqual(['bearer', 'client']);
  });
});

const RULES_WITHOUT_A_PURPOSE_HERE = {
  'info-license': 'off', // the package has no license
  'no-path-trailing-slash': 'off', // the older route has one in the protocol
  'operation-4xx-response': 'off', // a few routes accept every request
} as const;

it.each(['url', 'managementUrl'] as const)(
  'both OpenAPI documents pass the rules of a linter without a warning: at %s',
  async (port) => {
    const config = await createConfig({ extends: ['recommended'], rules: RULES_WITHOUT_A_PURPOSE_HERE });
    const { text } = await request(`${service[port]}/openapi.json`, {});
    const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  },
);

it('every response in a test is checked against the OpenAPI document', async () => {
  await expect(request(`${service.url}/mismatch/answer`, {})).rejects.toThrow(/must NOT have additional properties/);
  await expect(request(`${service.url}/mismatch/status`, {})).rejects.toThrow(/a status that the OpenAPI document/);
});

describe('the part of the OpenAPI document about grants', () => {
  it('has one schema for each grant, including those of other teams, distinguished by grant_type', () => {
    const { oneOf, discriminator } = bodyOf('/v2/customer/token');
    const names = ['cookie', 'anonymous', 'agent_token', 'identity_token', 'refresh_token', 'lotto', JWT_BEARER];
    expect(Object.keys(discriminator.mapping).sort()).toEqual([...names].sort());
    expect(oneOf).toHaveLength(names.length);
    for (const name of names) {
      const schema = document.components.schemas[`grant.${name.replaceAll(':', '-')}`];
      expect(schema.properties.grant_type).toMatchObject({ const: name });
      expect(schema.required).toContain('client_id');
    }
  });

  it('describes the common parameters of a grant that has no texts', () => {
    const { properties } = document.components.schemas['grant.lotto'];
    expect(properties.client_id.description).toMatch(/^[A-Z`].*\.$/s);
    expect(properties.organization_id.examples).toEqual([EXAMPLE.organizationId]);
    expect(properties.ticket.description).toBeUndefined();
  });

  it('describes a form body only for the grants that read one', () => {
    const { content } = document.paths['/v2/customer/token'].post.requestBody;
    const form = content['application/x-www-form-urlencoded'].schema;
    expect(form.oneOf ?? [form]).toEqual([{ $ref: `#/components/schemas/grant.${JWT_BEARER.replaceAll(':', '-')}` }]);
  });

  it('lists the response fields that each grant declares', () => {
    const schemas = responseSchemaOf('/v2/customer/token').anyOf;
    const fieldsOf = (name: string) =>
      Object.keys(schemas.find(({ title }: { title: string }) => title === name).properties);
    expect(fieldsOf('cookie')).not.toContain('client_id');
    expect(fieldsOf('identity_token')).toContain('client_id');
  });

  it('has only grants for groups at the group route, whose path contains the organization', () => {
    const { oneOf } = bodyOf('/v2/customer/{organization_id}/{group_id}/token');
    expect(oneOf.map(({ title }: { title: string }) => title).sort()).toEqual(['anonymous', 'cookie']);
    for (const { required } of oneOf) expect(required).not.toContain('organization_id');
  });
});

describe('the part of the OpenAPI document about the admin API', () => {
  it('accepts a client_secret, but never returns one', () => {
    const { post } = document.paths['/admin/clients'];
    expect(post.requestBody.content['application/json'].schema.properties).toHaveProperty('client_secret');
    expect(post.responses[201].content['application/json'].schema.properties).not.toHaveProperty('client_secret');
    expect(post.security).toEqual([{ operator: [] }]);
  });

  it('describes changes as merge patches: nothing is required, and null removes a field', () => {
    const { schema } = document.paths['/admin/agents/{key}'].patch.requestBody.content['application/merge-patch+json'];
    expect(schema.required).toBeUndefined();
    expect(schema.properties.name.anyOf).toContainEqual({ type: 'null' });
  });
});
