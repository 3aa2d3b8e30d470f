// The report: all its charts and tables together, for a page that has its data once or again and again.

function reportPage() {
  const [drawnTree, drawnFunctions] = [tree(), functions()];
  const [drawnLanes, drawnLedger, drawnResources, durations] = [lanes(), ledger(), resources(), distribution()];
  const sorted = operationsTable(durations.show);
  const searched = search([drawnTree, drawnFunctions]);

  return {
    /** Draw the charts of this data. What was chosen, enlarged, hidden or zoomed stays so. */
    draw(data) {
      drawnTree.update(data.tree);
      drawnFunctions.update(data.functions, data.concerned);
      drawnLanes.update(data.lanes, data.recent || null);
      drawnLedger.update(data.ledger);
      drawnResources.update(data.resources);
      durations.update(data.distributions);
    },
    /** Make the text and the tables usable after they were put into the page. */
    enliven() {
      copyButtons();
      sorted.update(document.getElementById("operations-table"));
      searched.update();
    },
  };
}
