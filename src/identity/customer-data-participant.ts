/** Stored rows about a customer, by the name of their table. */
export type ExportedRows = Record<string, object[]>;

/** Code, such as a grant, that stores data of customers in its own table. */
export interface CustomerDataParticipant {
  /**
   * Deletes the data of a customer that is erased or purged. An erasure calls it after the customer's sessions are
   * deleted, and again if the erasure is repeated. The participant may have no data of the customer. It has the time of
   * the request, 2.8 s after its first statement. If it fails, the response is 503, and the purge calls it again.
   */
  onErase(entityId: string): Promise<void>;

  /**
   * Returns those of these 1 to 500 customers that must be retained although they are idle. By default, none. It has 60 s.
   * If it fails, no customer is purged, and a later purge calls it again.
   */
  mustRetain?(entityIds: string[]): Promise<string[]>;

  /**
   * Returns the stored rows about a customer for an export, without secrets and hashes of secrets, at most 1,001 of
   * each table: the export has 1,000 of them, and says that there are more. By default, none.
   */
  exportRows?(entityId: string): Promise<ExportedRows>;
}
