import type { Type } from '@nestjs/common';
import { declaredProperties } from 'customer-authorization-service/testing-host';
import type { OutputCapture } from './output-capture.js';
import type { Parameters } from './token-request.js';

/**
 * Does what each rule does first, before any rule fails because of it.
 *
 * @throws Error with the reason of the first request that failed in the service, else the error of the work
 */
export async function prepare(output: OutputCapture, work: () => Promise<unknown>): Promise<void> {
  const first = output.lines.length;
  const failure = await output.during(work).then(
    () => undefined,
    (error: unknown) => error,
  );
  const failed = output.lines.slice(first).find((line) => /"status":5\d\d/.test(line));
  if (failed !== undefined) {
    const { method, route, status, cause = '' } = JSON.parse(failed);
    throw new Error(`no rule was checked: ${method} ${route} responds with ${status}: ${cause.split('\n')[0]}`);
  }
  if (failure) throw failure;
}

/** @throws Error if a request has parameters that the service does not read, or that have no value */
export function assertDeclared(parameters: Parameters, body: Type<object>): void {
  const declared = declaredProperties(body);
  const unknown = Object.keys(parameters).filter((name) => !declared.includes(name));
  const solution = 'give the property a rule such as @IsString(), or remove it from `valid`';
  if (unknown.length > 0) throw new Error(`${unknown}: sent by \`valid\`, not declared in ${body.name}; ${solution}`);
  const empty = Object.keys(parameters).filter((name) => parameters[name] === undefined);
  if (empty.length > 0) throw new Error(`${empty}: \`valid\` returns undefined; did a request in \`valid\` fail?`);
}
