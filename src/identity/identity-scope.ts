/** The organization and group that an identity belongs to. A browser has one identity per scope. */
export interface IdentityScope {
  organizationId: string;
  /** The empty string if the identity belongs to no group. */
  groupId: string;
}

/** The scope of an organization without a group, or the given scope. @internal */
export function scopeOf(scope: string | IdentityScope): IdentityScope {
  return typeof scope === 'string' ? { organizationId: scope, groupId: '' } : scope;
}
