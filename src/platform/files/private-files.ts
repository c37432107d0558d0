/** Files and folders that the process creates are for its user only (modes 600 and 700), whatever its umask was. */
export function makeNewFilesPrivate(): void {
  process.umask(0o077);
}
