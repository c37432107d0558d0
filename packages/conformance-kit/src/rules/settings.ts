import { join } from 'node:path';
import type { Type } from '@nestjs/common';
import { declaredProperties, RegistryFile, RegistryFileError } from 'customer-authorization-service/testing-host';
import type { GrantTestContext, Rule, RuleSet } from '../grant-test-context.js';
import { kitRegistry } from '../kit-registry.js';
import { writeRegistryFile } from '../registry-file.js';

const VALUES = [7, true, 'text', '', [], ['text'], { field: 'text' }];

/** The settings of the grant in the registry. Only fields that the class in `settings` declares are accepted. */
export const settingsRules: RuleSet = ({ settings }) => [
  {
    title: settings
      ? 'refuses a registry with settings of the grant that its settings class does not declare'
      : 'refuses a registry with settings of the grant, because it declares no settings',
    async check(context) {
      const violations = await violationsOf(context, { no_such_setting: 'text' });
      if (violations.length === 0) throw new Error('a registry with the field no_such_setting is accepted');
    },
  },
  ...(settings ? [hasRules(settings)] : []),
];

function hasRules(settings: Type<object>): Rule {
  return {
    title: 'has a rule for each of its settings',
    async check(context) {
      for (const field of declaredProperties(settings)) {
        const violations = await Promise.all(VALUES.map((value) => violationsOf(context, { [field]: value })));
        if (!violations.flat().some((violation) => violation.includes(`.${field}`)))
          throw new Error(`${field}: accepts any value`);
      }
    },
  };
}

/**
 * The violations of a registry in which a client has the settings of the test after a change. An invalid agent ensures that it is never applied.
 */
async function violationsOf({ declared, kit, environment }: GrantTestContext, changed: object): Promise<string[]> {
  const entry = { ...(kit.settings?.client ?? kit.settings?.organization), ...changed };
  const registry = kitRegistry({ client: { [declared.name]: entry } });
  registry.agents.push({ email: 'no address' });
  const path = join(environment.service.database.folder, `settings-${crypto.randomUUID()}.yaml`);
  const error = await environment.service.application
    .get(RegistryFile)
    .apply(writeRegistryFile(path, registry))
    .catch((reason: unknown) => reason);
  if (!(error instanceof RegistryFileError)) throw error;
  return error.violations.filter((violation) => violation.includes(`.grants.${declared.name}`));
}
