import type { RouteKit, RouteRequest } from '../kit.js';
import type { RouteRule } from '../route-subject.js';
import { rowsWith } from '../stored-cells.js';

/** Rows that the kit adds beyond what a response may have. */
const FURTHER_ROW_COUNT = 5;

/** What a `GET` route reads. */
export function listRules(name: string, { list, changesRows }: RouteKit): RouteRule[] {
  const isGet = name.startsWith('GET ');
  return [
    ...(list ? [limitsRows(list)] : []),
    ...(isGet && list === undefined ? [DECLARES_LIST] : []),
    ...(isGet && !changesRows ? [CHANGES_NOTHING] : []),
  ];
}

const DECLARES_LIST: RouteRule = {
  title: 'has a test that declares `list`, if its response has a list',
  async check(subject) {
    const { body } = await subject.expectSuccess(await subject.create());
    if (longestList(body) === undefined) return;
    throw new Error('declare list: { add, most } in the test, or `list: false` if the list cannot grow');
  },
};

function limitsRows({ add, most }: Exclude<RouteKit['list'], false | undefined>): RouteRule {
  return {
    title: `responds with at most ${most} rows of a longer list`,
    async check(subject) {
      const sent = await subject.create();
      for (let count = 0; count < most + FURTHER_ROW_COUNT; count++)
        await add({ ...sent, body: sent.body ?? {} } satisfies RouteRequest, subject.environment);
      const { body } = await subject.expectSuccess(sent);
      const length = longestList(body) ?? 0;
      if (length > most)
        throw new Error(`${length} rows; read at most ${most} by LIMIT, and add a parameter for the next`);
      if (length < most)
        throw new Error(
          `${length} rows after ${most + FURTHER_ROW_COUNT} calls of \`list.add\`; does it add rows for the caller of its request?`,
        );
    },
  };
}

/** The length of the longest array in a body; `undefined` if there is none. */
function longestList(body: unknown): number | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const lengths = Object.values(body).flatMap((value) => longestList(value) ?? []);
  if (Array.isArray(body)) lengths.push(body.length);
  return lengths.length > 0 ? Math.max(...lengths) : undefined;
}

const CHANGES_NOTHING: RouteRule = {
  title: 'changes no row, because a client or a proxy may repeat a GET request',
  async check(subject) {
    const sent = await subject.create();
    const before = await rowsWith(subject.service, ['']);
    await subject.send(sent);
    const after = await rowsWith(subject.service, ['']);
    const changed = after.find((row) => !before.includes(row)) ?? before.find((row) => !after.includes(row));
    const solution = 'use POST or DELETE; declare changesRows: true in the test if the change does not matter';
    if (changed !== undefined) throw new Error(`changes the row ${changed}; ${solution}`);
  },
};
