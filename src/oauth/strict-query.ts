import type { Type } from '@nestjs/common';
import { declaredProperties } from '../platform/validation.js';
import { parseQuery, queryOf } from './form.js';
import { OAuthError } from './oauth-error.js';
import { readParameters } from './parameters.js';

/** The names that a hint repeats. Any other unknown name is only described. */
const PRINTABLE_NAME = /^[\w.-]{1,64}$/;

/**
 * Reads the query of an operator's route. The service ignores unknown parameters of callers (protocol §2.5). An
 * operator who misspells a filter would get entries that the filter should exclude, so that the operator gets an error.
 *
 * @throws OAuthError `invalid_request` for an unknown, repeated or invalid parameter
 */
export function readStrictQuery<Query extends object>(queryClass: Type<Query>, url: string): Query {
  const declared = declaredProperties(queryClass);
  const unknown = [...new URLSearchParams(queryOf(url)).keys()].find((name) => !declared.includes(name));
  if (unknown !== undefined) {
    const name = PRINTABLE_NAME.test(unknown) ? unknown : 'query';
    // the caller chooses the name of an unknown parameter, and texts of callers are not logged
    throw OAuthError.invalidRequest(`${name}: unknown parameter`, 'an unknown parameter of the query');
  }
  return readParameters(queryClass, parseQuery(url));
}
