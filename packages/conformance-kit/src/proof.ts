import type { GrantTestContext } from './grant-test-context.js';
import { recordResponses } from './response-recorder.js';
import { textsIn } from './secret-search.js';
import type { Parameters } from './token-request.js';

/** A request that gets a token, with what happened while the test created it. */
export interface Proof {
  parameters: Parameters;
  /** The customers that were created for it. */
  customers: string[];
  /** The texts in the service's responses meanwhile. */
  responses: string[];
  /** The `Authorization` headers with bearer tokens in the requests meanwhile. */
  bearers: string[];
}

/** Calls `valid`, and observes the service meanwhile. */
export async function createProof(context: GrantTestContext): Promise<Proof> {
  const { service } = context.environment;
  const before = service.audit.length;
  const { result: parameters, texts, bearers } = await recordResponses(service, () => context.body());
  const created = service.audit.slice(before).filter(({ event }) => event === 'identity.created');
  const customers = created.flatMap(({ subject }) => (subject?.id === undefined ? [] : [subject.id]));
  return { parameters, customers, responses: texts.flatMap(textsOfJson), bearers };
}

function textsOfJson(text: string): string[] {
  try {
    return textsIn(JSON.parse(text));
  } catch {
    return [text];
  }
}
