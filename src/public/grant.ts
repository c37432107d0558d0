/**
 * The exports for grants: `customer-authorization-service/grant`. A grant of another team may use only these exports.
 * The grant `jwt-bearer` follows the same rule.
 */

export { Audit } from '../audit/audit.js';
export type { AuditEvent } from '../audit/audit-event.js';
export type { AgentPrincipal } from '../bearer/principal.js';
export type { Customer } from '../identity/customer.js';
export type { CustomerCreator } from '../identity/customer-creation.js';
export {
  type CustomerDataParticipant,
  CustomerDataParticipants,
} from '../identity/customer-data-participants.js';
export { Identities } from '../identity/identities.js';
export { IdentityModule } from '../identity/identity.module.js';
export { type BrowserCredentials, type CandidateCredentials, IdentityCookies } from '../identity/identity-cookies.js';
export type { IdentityScope } from '../identity/known-browsers.js';
export { Columns, createTables, dropTables, expiryIndex, NULLABLE } from '../migrations/schema.js';
export { isIdText } from '../oauth/id-text.js';
export { OAuthError } from '../oauth/oauth-error.js';
export { Optional } from '../oauth/parameters.js';
export { isPublicJwk } from '../oauth/public-jwk.js';
export { RemoteKeySet } from '../oauth/remote-key-set.js';
export { OrganizationUserModule } from '../organization-user/organization-user.module.js';
export { OrganizationUsers } from '../organization-user/organization-users.js';
export type { UserCustomer, UserRequest } from '../organization-user/user-request.js';
export { Clock } from '../platform/clock.js';
export { Configuration } from '../platform/configuration/configuration.js';
export { Database } from '../platform/database/database.js';
export type { EntityRow, NotNull, OrNull } from '../platform/database/entity-row.js';
export { Expires } from '../platform/database/expires.js';
export type { SqlDialect } from '../platform/database/sql-dialect.js';
export type { SqlText } from '../platform/database/sql-text.js';
export type { SqlValue } from '../platform/database/sql-value.js';
export {
  type InsertStatement,
  insertIgnoreStatement,
  insertStatement,
  type SelectStatement,
  selectStatement,
  type WriteStatement,
  writeStatement,
} from '../platform/database/statement.js';
export { equalInConstantTime, randomSecret, sha256 } from '../platform/secret.js';
export { UUID, uuidv7 } from '../platform/uuid.js';
export type { ClientApplication } from '../registry/client-application.entity.js';
export type { Organization } from '../registry/organization.entity.js';
export {
  type Browser,
  type Grant,
  GrantBody,
  type GrantOptions,
  type GrantRequest,
  type GrantResult,
  GrantType,
} from '../token/grant.js';
