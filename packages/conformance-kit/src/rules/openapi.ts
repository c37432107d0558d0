import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { declaredProperties } from 'customer-authorization-service/testing-host';
import type { GrantTestContext } from '../grant-test-context.js';
import { request } from '../http-client.js';
import type { RuleSet } from '../rule.js';

interface Entry {
  document: { components: { schemas: Record<string, { properties?: object }> } };
  requests: Record<string, { schema: BodySchema }>;
  responses: { title?: string }[];
}

interface BodySchema {
  discriminator?: { mapping: Record<string, string> };
  anyOf?: BodySchema[];
}

/** The discriminator of the grants. The first alternative has it if the body may also be JSON under another label. */
const discriminatorOf = (schema?: BodySchema) => schema?.discriminator ?? schema?.anyOf?.[0]?.discriminator;

const ajv = addFormats.default(new Ajv2020({ strict: false }));

/** The grant in the service's OpenAPI document, with which all other rules compare their responses, too. */
export const openApiRules: RuleSet = ({ name, body, form }) => [
  {
    title: 'is in the OpenAPI document, with its parameters and its response',
    async check(context) {
      const { document, requests, responses } = await entryOf(context);
      const parameters = await context.body();
      for (const type of ['application/json', ...(form ? ['application/x-www-form-urlencoded'] : [])]) {
        const component = discriminatorOf(requests[type]?.schema)?.mapping[name]?.split('/').at(-1) ?? '';
        const schema = document.components.schemas[component];
        if (!schema) throw new Error(`${type}: no entry of the grant`);
        const missing = declaredProperties(body).filter((each) => !Object.hasOwn(schema.properties ?? {}, each));
        if (missing.length > 0) throw new Error(`not in the entry: ${missing}`);
        if (!ajv.validate(schema, parameters))
          throw new Error(`a valid request does not match the schema: ${ajv.errorsText()}`);
      }
      const schema = responses.find(({ title }) => title === name);
      if (!schema) throw new Error('no response schema of the grant');
      if (!ajv.validate(schema, (await context.expectToken(parameters)).body)) throw new Error(ajv.errorsText());
    },
  },
];

async function entryOf({ environment }: GrantTestContext): Promise<Entry> {
  const { body: document } = await request(`${environment.service.managementUrl}/openapi.json`, {});
  const { requestBody, responses } = document.paths['/v2/customer/token'].post;
  return {
    document,
    requests: requestBody.content,
    responses: responses[200].content['application/json'].schema.anyOf,
  };
}
