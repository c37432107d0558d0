import { request } from '../http-client.js';
import type { TestService } from '../test-service.js';

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
