import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { violationsOf } from '../../platform/validation-violations.js';
import type { GrantSettingsClasses, SettingsOwner } from '../grant-settings-classes.js';

const UNKNOWN_GRANT = 'not a grant of this service; remove the entry, or import the module of the grant';
const NO_SETTINGS = 'this grant has no settings; remove the entry, or declare `settings` in the decorator of the grant';

/** The violations of a list of grants. Items that are no strings are left to the class of the entry. */
export function grantTypesViolations(path: string, names: unknown, settingsClasses: GrantSettingsClasses): string[] {
  return (Array.isArray(names) ? names : []).flatMap((name, index) =>
    typeof name !== 'string' || settingsClasses.has(name) ? [] : [`${path}[${index}]: ${UNKNOWN_GRANT}`],
  );
}

/** The violations of the settings of grants. The class that a grant declares validates its settings. */
export function grantSettingsViolations(
  path: string,
  settings: unknown,
  owner: SettingsOwner,
  settingsClasses: GrantSettingsClasses,
): string[] {
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings)) return [];
  return Object.entries(settings).flatMap(([name, value]) =>
    settingsViolations(`${path}.${name}`, name, value, owner, settingsClasses),
  );
}

function settingsViolations(
  path: string,
  name: string,
  value: unknown,
  owner: SettingsOwner,
  settingsClasses: GrantSettingsClasses,
): string[] {
  if (!settingsClasses.has(name)) return [`${path}: ${UNKNOWN_GRANT}`];
  const settings = settingsClasses.settings(name, owner);
  if (!settings) return [`${path}: ${NO_SETTINGS}`];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path}: must be a mapping`];
  const options = { whitelist: true, forbidNonWhitelisted: true };
  return violationsOf(validateSync(plainToInstance(settings, value), options), path);
}
