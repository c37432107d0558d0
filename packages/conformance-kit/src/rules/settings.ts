import { join } from 'node:path';
import { declaredProperties, RegistryFile, RegistryFileError } from 'customer-authorization-service/testing-host';
import type { GrantTestContext } from '../grant-test-context.js';
import { kitRegistry } from '../kit-registry.js';
import { writeRegistryFile } from '../registry-file.js';
import type { RuleSet } from '../rule.js';

const VALUES = [7, true, 'text', '', [], ['text'], { field: 'text' }];

/** The settings of the grant in the registry. Only fields that the class in `settings` declares are accepted. */
export const settingsRules: RuleSet = ({ settings }) => [
  {
    title: settings
      ? 'refuses a registry with settings of the grant that its settings class does not declare'
      : 'refuses a registry with settings of the grant, because it declares no settings',
    async check(context) {
      const { settings: given } = context.kit;
      const entry = { ...(given?.client ?? given?.organization), no_such_setting: 'text' };
      const violations = await violationsOf(context, entry);
      if (violations.length === 0) throw new Error('a registry with the field no_such_setting is accepted');
    },
  },
  ...(settings
    ? [
        {
          title: 'has a rule for each of its settings',
          async check(context: GrantTestContext) {
            const { settings: given } = context.kit;
            for (const field of declaredProperties(settings)) {
              const entry = { ...(given?.client ?? given?.organization) };
              const violationsOfValues = await Promise.all(
                VALUES.map((value) => violationsOf(context, { ...entry, [field]: value })),
              );
              const isRuled = violationsOfValues.some((violations) =>
                violations.some((violation) => violation.includes(`.${field}`)),
              );
              if (!isRuled) throw new Error(`${field}: accepts any value`);
            }
          },
        },
      ]
    : []),
];

/**
 * The violations of a registry in which a client has these settings. An invalid agent ensures that it is never applied.
 */
async function violationsOf({ declared, environment }: GrantTestContext, entry: object): Promise<string[]> {
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
