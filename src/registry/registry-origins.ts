/** The origins that the pages of each client come from, and those of all clients together. */
export class RegistryOrigins {
  private readonly byClient = new Map<string, readonly string[]>();
  /** The number of clients with each origin. */
  private readonly clientCounts = new Map<string, number>();

  has(clientId: string, origin: string): boolean {
    return this.byClient.get(clientId)?.includes(origin) ?? false;
  }

  hasAny(origin: string): boolean {
    return this.clientCounts.has(origin);
  }

  /** Replaces the origins of a client. `undefined` removes the client. */
  set(clientId: string, origins: readonly string[] | undefined): void {
    for (const origin of this.byClient.get(clientId) ?? []) this.count(origin, -1);
    if (origins === undefined) return void this.byClient.delete(clientId);
    this.byClient.set(clientId, origins);
    for (const origin of origins) this.count(origin, 1);
  }

  private count(origin: string, difference: 1 | -1): void {
    const count = (this.clientCounts.get(origin) ?? 0) + difference;
    if (count === 0) this.clientCounts.delete(origin);
    else this.clientCounts.set(origin, count);
  }
}
