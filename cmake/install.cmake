# cmake --install: both programs, and the client library for programs of others,
# found by find_package(posenc) or pkg-config. posenc::client needs a server;
# posenc::embedded has all of lib/ inside.
include(CMakePackageConfigHelpers)

set(exported
  proto grpc health client_core client embedded
  base hash memory cache numeric families model_config engine)
foreach(name ${exported})
  set_target_properties(posenc_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS posenc_${name} EXPORT posenc ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(TARGETS posenc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

install(DIRECTORY ${PROJECT_SOURCE_DIR}/client/include/posenc TYPE INCLUDE)
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/posenc TYPE INCLUDE
  FILES_MATCHING PATTERN "*.pb.h" PATTERN "*.grpc.pb.h" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/proto/posenc DESTINATION ${CMAKE_INSTALL_DATADIR}/posenc/proto
  FILES_MATCHING PATTERN "*.proto")

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/posenc)
install(EXPORT posenc NAMESPACE posenc:: FILE posenc-targets.cmake DESTINATION ${config_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/posenc-config.cmake.in
  ${PROJECT_BINARY_DIR}/posenc-config.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/posenc-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/posenc-config.cmake
              ${PROJECT_BINARY_DIR}/posenc-config-version.cmake DESTINATION ${config_folder})

# Found from where the file itself lies, so that a moved tree still works.
file(RELATIVE_PATH includes_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /${CMAKE_INSTALL_INCLUDEDIR})
configure_file(${CMAKE_CURRENT_LIST_DIR}/posenc-client.pc.in
  ${PROJECT_BINARY_DIR}/posenc-client.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/posenc-client.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
