// The scripts above only define functions. The page starts here.

const data = JSON.parse(document.getElementById("data").textContent);
copyButtons();
const drawnBoxes = [tree(data.tree), functions(data.functions, data.concerned)].filter(Boolean);
lanes(data.lanes);
ledger(data.ledger);
resources(data.resources);
const durations = distribution(data.distributions);
operationsTable(document.getElementById("operations-table"), durations.show);
search(drawnBoxes);
