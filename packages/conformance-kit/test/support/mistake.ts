let current: string | undefined;

/** Sets the mistake that the grants and routes of the tests make from now on, so that one service serves for many. */
export function makeMistake(mistake?: string): void {
  current = mistake;
}

export const makes = (mistake: string): boolean => current === mistake;
