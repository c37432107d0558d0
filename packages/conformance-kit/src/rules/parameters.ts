import { declaredProperties, readParameters, schemaOf } from '@customer-authorization/service/testing-host';
import type { Type } from '@nestjs/common';
import { type Parameters, parametersOf, type SentRequest, withoutParameter, withParameter } from '../request.js';
import { about, type Rule } from '../rule.js';
import { COMMON_PARAMETERS } from '../secret-search.js';
import { assertFits } from '../stored-cells.js';
import type { Subject } from '../subject.js';

const HUGE_CHARACTERS = 10_000;
const WRONG_TYPES = [7, true, null, [], {}, ['text']];
const HOSTILE_TEXTS = [
  ...[' ', '\0', 'text\0', '\ufeff', '\u202e', '\ud800', '%00', '%', '%zz', '../../etc/passwd', 'a'.repeat(300)],
  ...['null', 'NaN', '0', '-1', '1e400', '9007199254740993', '{}', '[]', "' OR '1'='1", '"; DROP TABLE customer; --'],
  ...['\\', '`', '{{7*7}}', '*', '?', '"><script>', '\r\nx-injected: 1', 'https://evil.example/', '😀'.repeat(20)],
  ...['a\u0301', 'İıſK', '00000000-0000-0000-0000-000000000000', '__proto__', 'constructor', 'toString'],
];

/** What the service cannot check for the author: the validation rules of the author's own parameters. */
export const parameterRules: Rule<Subject>[] = [
  {
    title: 'responds by the protocol to values of a wrong type and to unusual texts in its own parameters',
    async check(subject) {
      const sent = await subject.create();
      for (const name of textsOf(sent)) for (const text of HOSTILE_TEXTS) await sendChanged(subject, sent, name, text);
      for (const name of subject.ownParameters)
        for (const value of WRONG_TYPES) await sendChanged(subject, sent, name, value);
    },
  },
  {
    title: 'limits the length of its own parameters, at most to that of its columns',
    async check(subject) {
      const { body } = subject;
      if (body === undefined) return;
      for (const name of subject.ownParameters) {
        const sent = await subject.create();
        if (typeof sent.body?.[name] !== 'string') continue;
        const text = longestText(body, sent.body, name);
        const solution = 'give it the @MaxLength() of its column, or a pattern from ^ to $';
        if (text.length >= HUGE_CHARACTERS)
          throw new Error(`${name}: its rules accept ${HUGE_CHARACTERS} characters; ${solution}`);
        await about(`${name}, with the longest text that its rules accept; ${solution}`, async () => {
          await subject.send(withParameter(sent, name, text));
          await assertFits(subject.service);
        });
      }
    },
  },
  {
    title: 'responds by the protocol to a request without its optional parameters',
    async check(subject) {
      const { body } = subject;
      if (body === undefined) return;
      const required = new Set(['grant_type', 'client_id', ...(schemaOf(body).required ?? [])]);
      const optional = declaredProperties(body).filter((name) => !required.has(name));
      for (const name of optional) {
        const sent = await subject.create();
        await about(`without ${name}`, () => subject.send(withoutParameter(sent, name)));
      }
    },
  },
];

/** The names of the texts in a request, also in its path and its query, that belong to the grant or the route alone. */
function textsOf(sent: SentRequest): string[] {
  const texts = Object.entries(parametersOf(sent)).filter(([, value]) => typeof value === 'string');
  return texts.map(([name]) => name).filter((name) => !COMMON_PARAMETERS.has(name));
}

function sendChanged(subject: Subject, sent: SentRequest, name: string, value: unknown): Promise<unknown> {
  return about(`${name}: ${JSON.stringify(value)}`, () => subject.send(withParameter(sent, name, value)));
}

export function isAccepted(body: Type<object>, parameters: Parameters): boolean {
  try {
    readParameters(body, parameters);
    return true;
  } catch {
    return false;
  }
}

/**
 * The longest text that the rules of a body accept, at most about 10,000 characters. It repeats one character of a
 * valid text, because a pattern may admit any number of characters at one place only, for example before an @.
 */
function longestText(body: Type<object>, parameters: Parameters, name: string): string {
  const value = `${parameters[name]}`;
  const repeated = (at: number, count: number) =>
    value.slice(0, at) + (value[at] as string).repeat(count) + value.slice(at + 1);
  let longest = value;
  for (let at = 0; at < value.length; at++) {
    let [accepted, refused] = [1, HUGE_CHARACTERS + 1];
    while (refused - accepted > 1) {
      const count = (accepted + refused) >> 1;
      if (isAccepted(body, { ...parameters, [name]: repeated(at, count) })) accepted = count;
      else refused = count;
    }
    const text = repeated(at, accepted);
    if (text.length > longest.length) longest = text;
  }
  return longest;
}
