import { type Fields, formOf, jsonOf, mutateBytes, mutateFields } from '../fuzz/body-mutations.js';
import { FUZZ_MARKER } from '../fuzz/hostile-values.js';
import { Random } from '../fuzz/random.js';
import type { GrantTestContext, RuleSet } from '../grant-test-context.js';
import type { TestResponse } from '../http-client.js';
import { ORIGIN, OWN_ORGANIZATION } from '../kit-registry.js';
import type { Parameters, SendOptions } from '../token-request.js';

const { FUZZ_SEED, FUZZ_FIRST, FUZZ_REQUESTS } = process.env;

/**
 * The options of the kit's fuzzing. Every run sends the same requests unless FUZZ_SEED, FUZZ_FIRST or FUZZ_REQUESTS is
 * set.
 */
export const fuzzOptions = {
  seed: Number(FUZZ_SEED || 2026),
  first: Number(FUZZ_FIRST || 0),
  requests: Number(FUZZ_REQUESTS || 2_000),
};

const WORKER_COUNT = 16;
/** The number of requests that are derived from the same valid request. */
const REQUESTS_PER_BODY = 20;
/** The numbers of mutations of a request, as often as they occur in the list. 0 sends a valid request. */
const MUTATION_COUNTS = [0, 1, 1, 1, 2, 2, 3];
const HEADERS: [name: string, values: string[]][] = [
  ['origin', [ORIGIN, 'https://evil.example', 'null', `https://${FUZZ_MARKER}.example`]],
  ['cookie', ['__svc_cid=x; __svc_cst=y', `__svc_cid=${FUZZ_MARKER}`, '=', ';;', 'a'.repeat(3_000)]],
  ['authorization', ['Bearer x', `Bearer dev:${FUZZ_MARKER}`, 'Basic eA==', 'Bearer', `Bearer ${'a.'.repeat(500)}`]],
  ['content-type', ['application/x-www-form-urlencoded', 'application/json; charset=utf-16', 'x']],
];

/**
 * Sends valid requests with random mutations. Each response must follow the protocol, in time and without a 5xx status.
 */
export const fuzzRules: RuleSet = () => [
  {
    title: `responds to ${fuzzOptions.requests} fuzzed requests of seed ${fuzzOptions.seed} by the protocol and changes no prototype`,
    async check(context) {
      const { first, requests } = fuzzOptions;
      let next = first;
      let failure: unknown;
      const worker = async () => {
        const proof = new ReusedProof(context);
        while (next < first + requests && failure === undefined) {
          const index = next++;
          await fuzzOne(context, index, proof).catch((error) => {
            failure ??= error;
          });
        }
      };
      await Promise.all(Array.from({ length: WORKER_COUNT }, worker));
      if (failure !== undefined) throw failure;
      context.assertPrototypesUnchanged();
    },
  },
];

/** Calls `valid` only if a response shows that the last request is used up, or if it is old. */
class ReusedProof {
  private parameters: Parameters | undefined;
  private uses = 0;

  constructor(private readonly context: GrantTestContext) {}

  async get(): Promise<Parameters> {
    if (this.uses++ % REQUESTS_PER_BODY === 0) this.parameters = undefined;
    this.parameters ??= await this.context.body();
    return this.parameters;
  }

  /** Notes the response to a request that was derived from the parameters. */
  note({ status, body }: TestResponse): void {
    if (this.context.kit.singleUse && (status === 200 || body.error === 'invalid_grant')) this.parameters = undefined;
  }
}

async function fuzzOne(context: GrantTestContext, index: number, proof: ReusedProof): Promise<void> {
  const { seed } = fuzzOptions;
  const valid = await proof.get();
  const random = new Random(seed, index);
  const fields: Fields = Object.entries(valid).map(([name, value]) => [name, value]);
  const notes = Array.from({ length: random.pick(MUTATION_COUNTS) }, () => mutateFields(fields, random));
  const isForm = context.declared.form === true && random.chance(0.3);
  const options: SendOptions = { headers: isForm ? { 'content-type': 'application/x-www-form-urlencoded' } : {} };
  let body: Buffer = Buffer.from((isForm ? formOf : jsonOf)(fields, random));
  if (random.chance(0.15)) {
    const [mutated, note] = mutateBytes(body, random);
    body = mutated;
    notes.push(note);
  }
  if (random.chance(0.2)) {
    const [name, values] = random.pick(HEADERS);
    options.headers = { ...options.headers, [name]: random.pick(values) };
    notes.push(name);
  }
  if (random.chance(0.1))
    options.path = `/v2/customer/${OWN_ORGANIZATION}/${random.pick(['sales', 'support', 'x'.repeat(65)])}/token`;
  try {
    proof.note(await context.send(body, options));
  } catch (error) {
    const repeat = `FUZZ_SEED=${seed} FUZZ_FIRST=${index} FUZZ_REQUESTS=1`;
    const what = `${notes.join('; ') || 'nothing'}: ${JSON.stringify(body.toString('latin1'))}`;
    throw new Error(`${(error as Error).message}\n${repeat}\n${what}`, { cause: error });
  }
}
