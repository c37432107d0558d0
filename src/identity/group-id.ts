/** The id of a group (protocol §4.2). Case counts. */
export const GROUP_ID = /^[A-Za-z0-9_-]{1,64}$/;

export const GROUP_ID_RULE = 'must be 1 to 64 letters, digits, _ or -';
