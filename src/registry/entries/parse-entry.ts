import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { OAuthError } from '../../oauth/oauth-error.js';
import { UNKNOWN_FIELD, violationsOf } from '../../platform/validation-violations.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import type { Entry } from './entry.js';
import { prototypeKeyViolations } from './reject-prototype-keys.js';

/** Validates an entry by the class of its resource. @throws OAuthError `invalid_request` */
export function parseEntry({ entry }: RegistryResource, value: unknown): Entry {
  const [prototypeKey] = prototypeKeyViolations(value);
  if (prototypeKey !== undefined) throw OAuthError.invalidRequest(prototypeKey, 'an unknown field');
  const parsed = plainToInstance(entry, value, { exposeDefaultValues: true });
  const [violation] = violationsOf(validateSync(parsed, { whitelist: true, forbidNonWhitelisted: true }));
  if (violation === undefined) return { ...parsed };
  // the caller chooses the name of an unknown field, and texts of callers are not logged
  const reason = violation.endsWith(UNKNOWN_FIELD) ? 'an unknown field' : undefined;
  throw OAuthError.invalidRequest(violation, reason);
}
