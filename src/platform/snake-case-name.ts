/** The form of the names of grants, extensions, limits and audit events. */
export const SNAKE_CASE_NAME = /^[a-z][a-z0-9_]{0,63}$/;
