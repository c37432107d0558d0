/** The scope that an agent needs to create customers and to act for them. */
export const CUSTOMERS_OWN = 'customers:own';
/** The scope that an agent needs to export and erase the data of customers. */
export const CUSTOMERS_MANAGE = 'customers:manage';
