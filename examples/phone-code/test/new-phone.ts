let phones = 0;
export const newPhone = (): string => `+49151${10_000_000 + phones++}`;
