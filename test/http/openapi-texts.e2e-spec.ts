import { beforeAll, describe, expect, it } from 'vitest';
import { TryItModule } from '../../packages/try-it/src/try-it.module.js';
import { EXAMPLE } from '../../src/platform/http/api-examples.js';
import {
  hasExample,
  mediaOf,
  type OpenApi,
  operationsOf,
  propertiesOf,
  resolved,
  violationOf,
} from '../support/openapi-texts.js';
import { request } from '../support/test-service.js';
import { useService } from '../support/use-service.js';

const SENTENCE = /^[A-Z`].*\.$/s;
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

const service = useService({ modules: [TryItModule], environment: { TRY_IT: 'true' } });

describe.each(['url', 'managementUrl'] as const)('the OpenAPI document at %s', (port) => {
  let document: OpenApi;
  beforeAll(async () => {
    document = (await request(`${service[port]}/openapi.json`, {})).body as OpenApi;
  });

  it('describes each operation, parameter, response and header in sentences', () => {
    for (const [name, { description, parameters, responses }] of operationsOf(document)) {
      expect(description, name).toMatch(SENTENCE);
      for (const parameter of parameters) expect(parameter.description, `${name} ${parameter.name}`).toMatch(SENTENCE);
      for (const [status, response] of Object.entries(responses)) {
        const { description: text, headers = {} } = resolved(document, response);
        expect(text, `${name} ${status}`).toMatch(SENTENCE);
        for (const [header, texts] of Object.entries(headers)) expect(texts.description, header).toMatch(SENTENCE);
      }
    }
  });

  it('describes each field of each body, response and error, with an example', () => {
    const fields = operationsOf(document).flatMap((operation) =>
      mediaOf(document, operation).flatMap(([name, { schema }]) => propertiesOf(document, [name, schema])),
    );
    expect(fields.length).toBeGreaterThan(200);
    for (const [name, schema] of fields) {
      expect(schema.description, name).toMatch(SENTENCE);
      expect(hasExample(schema), name).toBe(true);
    }
  });

  it('describes each grant', () => {
    const grants = Object.entries(document.components.schemas).filter(([name]) => name.startsWith('grant.'));
    expect(grants.length).toBeGreaterThanOrEqual(5);
    for (const [name, { description }] of grants) expect(description, name).toMatch(SENTENCE);
  });

  it('has an example of each parameter and header', () => {
    for (const operation of operationsOf(document)) {
      const [name, { parameters, responses }] = operation;
      for (const parameter of parameters) expect(parameter.example, `${name} ${parameter.name}`).toBeDefined();
      for (const response of Object.values(responses))
        for (const [header, { example }] of Object.entries(resolved(document, response).headers ?? {}))
          expect(example, `${name} ${header}`).toBeDefined();
    }
  });

  it('has only examples that match their schemas', () => {
    for (const operation of operationsOf(document)) {
      const [name, { parameters }] = operation;
      for (const { schema, example, name: parameter } of parameters)
        expect(violationOf(document, schema, example), `${name} ${parameter}`).toBeUndefined();
      for (const [at, media] of mediaOf(document, operation)) {
        for (const [field, schema] of propertiesOf(document, [at, media.schema]))
          for (const example of schema.examples ?? [])
            expect(violationOf(document, schema, example), field).toBeUndefined();
      }
    }
  });

  it('uses the same ids in all examples, and no value in the form of a real token', () => {
    const text = JSON.stringify(document);
    const known = Object.values(EXAMPLE).map(String);
    for (const [id] of text.matchAll(UUID)) expect(known).toContain(id);
    expect(text).not.toMatch(/eyJ[\w-]{8}/);
  });
});
