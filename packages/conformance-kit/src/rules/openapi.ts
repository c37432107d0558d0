import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { declaredProperties } from 'customer-authorization-service/testing-host';
import type { RuleSet } from '../grant-test-context.js';
import { request } from '../http-client.js';
import { TOKEN } from '../test-environment.js';
import type { TestService } from '../test-service.js';

interface BodySchema {
  discriminator?: { mapping: Record<string, string> };
  anyOf?: BodySchema[];
}

const ajv = addFormats.default(new Ajv2020({ strict: false }));

/** The grant in the service's OpenAPI document, with which all other rules compare their responses, too. */
export const openApiRules: RuleSet = ({ name, body, form }) => [
  {
    title: 'is in the OpenAPI document, with its parameters and its response',
    async check(context) {
      const { body: document } = await request(`${context.environment.service.managementUrl}/openapi.json`, {});
      const { requestBody, responses } = document.paths[TOKEN].post;
      const parameters = await context.body();
      for (const type of ['application/json', ...(form ? ['application/x-www-form-urlencoded'] : [])]) {
        const all: BodySchema | undefined = requestBody.content[type]?.schema;
        // the first alternative has the discriminator if the body may also be JSON under another label
        const { mapping = {} } = all?.discriminator ?? all?.anyOf?.[0]?.discriminator ?? {};
        const schema = document.components.schemas[mapping[name]?.split('/').at(-1) ?? ''];
        if (!schema) throw new Error(`${type}: no entry of the grant`);
        const missing = declaredProperties(body).filter((each) => !Object.hasOwn(schema.properties ?? {}, each));
        if (missing.length > 0) throw new Error(`not in the entry: ${missing}`);
        if (!ajv.validate(schema, parameters))
          throw new Error(`a valid request does not match the schema: ${ajv.errorsText()}`);
      }
      const tokens: { title?: string }[] = responses[200].content['application/json'].schema.anyOf;
      const schema = tokens.find(({ title }) => title === name);
      if (!schema) throw new Error('no response schema of the grant');
      if (!ajv.validate(schema, (await context.expectToken(parameters)).body)) throw new Error(ajv.errorsText());
    },
  },
];

/** The names of all properties in a part of the document, with those of the components that it refers to. */
export function propertiesOf(part: unknown, components: Record<string, unknown>): string[] {
  if (typeof part !== 'object' || part === null) return [];
  const { $ref, properties = {} } = part as { $ref?: string; properties?: object };
  const component = $ref === undefined ? undefined : components[$ref.split('/').at(-1) ?? ''];
  const parts = [...Object.values(part), component];
  return [...Object.keys(properties), ...parts.flatMap((each) => propertiesOf(each, components))];
}

/** The names of all properties in the responses of `GET` routes. */
export async function listedProperties({ url }: TestService): Promise<string[]> {
  const { body: document } = await request(`${url}/openapi.json`, {});
  const paths: { get?: { responses: object } }[] = Object.values(document.paths);
  return paths.flatMap(({ get }) => propertiesOf(get?.responses, document.components.schemas));
}
