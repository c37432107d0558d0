import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import type { ObjectLiteral } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { faultsOf, UNKNOWN_FIELD } from '../platform/validation-faults.js';
import { hashPassword } from './agent-password.js';
import type { Entry, EntryList } from './entry-kinds.js';
import { namesOfPrototypes } from './file/names-of-prototypes.js';
import { RegistryDocument } from './file/registry-document.js';
import { NEW_ORGANIZATION } from './file/registry-rows.js';
import { NO_PREVIOUS_SECRETS } from './previous-secrets.js';

/** An entry by the classes of the registry file. @throws OAuthError `invalid_request` */
export function entryOf(list: EntryList, sent: unknown): ObjectLiteral {
  const [strange] = namesOfPrototypes(sent);
  if (strange !== undefined) throw OAuthError.invalidRequest(strange, 'an unknown field');
  const document = plainToInstance(RegistryDocument, { [list]: [sent] }, { exposeDefaultValues: true });
  const [fault] = faultsOf(validateSync(document, { whitelist: true, forbidNonWhitelisted: true }));
  if (fault === undefined) return document[list][0] as ObjectLiteral;
  // the name of a field that nobody knows is the caller's own text, which the log is not told
  const reason = fault.endsWith(UNKNOWN_FIELD) ? 'an unknown field' : undefined;
  throw OAuthError.invalidRequest(fault.replace(`${list}[0].`, ''), reason);
}

/** Before the transaction: on SQLite whatever others write while it waits would be part of it. */
export function passwordHashOf({ password }: ObjectLiteral): Promise<string | undefined> {
  return Promise.resolve(typeof password === 'string' ? hashPassword(password) : undefined);
}

/** Columns of fields that `null` takes away, where leaving the field out of an entry would keep the column as it is. */
export function takenAway(sent: Entry): ObjectLiteral {
  return {
    ...(sent.client_secret === null && { secretHash: null, ...NO_PREVIOUS_SECRETS }),
    ...(sent.public_clients === null && NEW_ORGANIZATION),
  };
}
