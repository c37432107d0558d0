/** The roles of operators (protocol §9.1). */
export const ADMIN_ROLES = ['read', 'registry', 'support', 'all'] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

export function isAdminRole(text: unknown): text is AdminRole {
  return (ADMIN_ROLES as readonly unknown[]).includes(text);
}

/** Whether an operator with the role `held` may use a route that needs the role `needed`. */
export function isSufficientRole(held: AdminRole, needed: AdminRole): boolean {
  return held === 'all' || held === needed || (held === 'registry' && needed === 'read');
}
