/** The secure storage of a phone, for the examples of apps. `token` is the stored refresh token. */
export function secureStorage(token?: string) {
  const items = new Map<string, string>();
  if (token) items.set('refresh-token', token);
  return {
    items,
    get token() {
      return items.get('refresh-token');
    },
    read: async (name: string) => items.get(name),
    write: async (name: string, text: string) => void items.set(name, text),
    remove: async (name: string) => void items.delete(name),
  };
}
