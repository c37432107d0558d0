/**
 * The exports for grants: `@customer-authorization/service/grant`. A grant of another team may use only these exports.
 * The grant `jwt-bearer` follows the same rule.
 */

export type { Customer, CustomerCreator, CustomerSpace } from '../customer/customer.js';
export { AgentGuard, BearerGuard, type CallerGuard, CustomerGuard } from '../http/callers/bearer.guard.js';
export type { AgentPrincipal, CustomerPrincipal, Principal } from '../http/callers/principal.js';
export type { Browser, ClientParameters } from '../http/routes/client-request.js';
export {
  Caller,
  CallingBrowser,
  type CheckedClient,
  type ClientCheckOptions,
  ClientQuery,
  ClientRequest,
  type ClientRequestOptions,
  type ParameterOf,
  ValidatedBody,
  ValidatedQuery,
} from '../http/routes/parameter.decorators.js';
export { CustomerService } from '../identity/customer.service.js';
export type { CustomerDataParticipant, ExportedRows } from '../identity/customer-data-participant.js';
export type { NewCustomer, NewCustomerCheck } from '../identity/extension-hooks.js';
export { type BrowserCredentials, type CandidateCredentials, IdentityCookies } from '../identity/identity-cookies.js';
export {
  OrganizationUsers,
  type UserCustomer,
  type UserRequest,
  type UserSignIn,
} from '../identity/users/organization-users.js';
export { addColumns, Columns, createTables, dropTables, expiryIndex, NULLABLE } from '../migrations/schema.js';
export { JwtIssuer } from '../oauth/jwt-issuer.js';
export { JwtProofs, type ProvenJwt } from '../oauth/jwt-proofs.js';
export { type CountedRequest, Limits } from '../oauth/limits.js';
export { OAuthError } from '../oauth/oauth-error.js';
export type { BodyOptions } from '../oauth/request-body.js';
export type { AuditEntry } from '../platform/audit/audit-event.js';
export { Clock } from '../platform/clock.js';
export { Configuration } from '../platform/configuration/configuration.js';
export type { LimitDeclarations, LimitText } from '../platform/configuration/rate-limit-rule.js';
export { Database } from '../platform/database/database.js';
export { Expires } from '../platform/database/entity-checks.js';
export type { SqlDialect, SqlText, SqlValue } from '../platform/database/sql-dialect.js';
export {
  type EntityRow,
  type InsertStatement,
  insertIgnoreStatement,
  insertStatement,
  type NotNull,
  type OrNull,
  type SelectStatement,
  selectStatement,
  type WriteStatement,
  writeStatement,
} from '../platform/database/statement.js';
export { ApiProperty, ApiRoute, type ApiRouteDescription } from '../platform/http/api-route.js';
export { ManagementController, PublicController } from '../platform/http/listener.decorators.js';
export { AnyOrigin } from '../platform/http/route-parameters.js';
export { equalInConstantTime, randomSecret, sha256 } from '../platform/secret.js';
export { UUID } from '../platform/uuid.js';
export { isIdText } from '../platform/validation/text-rules.js';
export { Nested, Optional } from '../platform/validation/validation.js';
export type { ClientApplication } from '../registry/client-application.entity.js';
export type { Organization } from '../registry/organization.entity.js';
export { defineExtension, type Extension, type ExtensionParts } from '../token/extension.js';
export {
  type AnyGrantRequest,
  type AttemptKey,
  type AttemptLimit,
  type Grant,
  GrantBody,
  type GrantDescription,
  type GrantOptions,
  type GrantRequest,
  type GrantResult,
  GrantType,
  type ProofRules,
} from '../token/grant.js';
export { CustomersByKey } from '../token/stores/customers-by-key.js';
export { GrantStoresModule } from '../token/stores/grant-stores.module.js';
export { type IssuedCode, type IssueOptions, OneTimeCodes, type RedeemedCode } from '../token/stores/one-time-codes.js';
export { UseCounter } from '../token/stores/use-counter.js';
