/** Files and folders that the process creates are for its user only (modes 600 and 700) with every umask. */
export function makeNewFilesPrivate(): void {
  process.umask(0o077);
}
