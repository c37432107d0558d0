/** What a command needs of the application. */
export interface CommandOptions {
  /** The variables that the command uses; all if omitted. */
  variables?: string[];
  /** Whether the command creates the embedded database if its file does not exist. Otherwise the command fails. */
  createsDatabase?: boolean;
}
