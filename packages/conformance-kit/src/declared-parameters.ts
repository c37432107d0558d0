import type { Type } from '@nestjs/common';
import { declaredProperties } from 'customer-authorization-service/testing-host';
import type { Parameters } from './token-request.js';

/** @throws Error if a request has parameters that the service does not read, or that have no value */
export function assertDeclared(parameters: Parameters, body: Type<object>): void {
  const declared = declaredProperties(body);
  const unknown = Object.keys(parameters).filter((name) => !declared.includes(name));
  const solution = 'give the property a rule such as @IsString(), or remove it from `valid`';
  if (unknown.length > 0) throw new Error(`${unknown}: sent by \`valid\`, not declared in ${body.name}; ${solution}`);
  const empty = Object.keys(parameters).filter((name) => parameters[name] === undefined);
  if (empty.length > 0) throw new Error(`${empty}: \`valid\` returns undefined; did a request in \`valid\` fail?`);
}
